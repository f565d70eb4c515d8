"""Functions with requirements, which code that a model writes may call in its kernel."""

import asyncio

import pandas
from autogen_core import CancellationToken
from autogen_core.code_executor import CodeBlock, with_requirements

from jupyter_agent_exec.adapters.autogen import JupyterCodeExecutor


@with_requirements(python_packages=["pandas"], global_imports=["pandas"])
def load_data() -> pandas.DataFrame:
    """Load some people: name (str), location (str) and age (int)."""
    data = {
        "name": ["John", "Anna", "Peter", "Linda"],
        "location": ["New York", "Paris", "Berlin", "London"],
        "age": [24, 13, 53, 33],
    }
    return pandas.DataFrame(data)


async def main() -> None:
    """Print what a model is told of the function, and call it as a model would."""
    async with JupyterCodeExecutor(functions=[load_data]) as executor:
        print(executor.format_functions_for_prompt())
        code = f"from {executor.functions_module} import load_data\n\ndata = load_data()\n"
        result = await executor.execute_code_blocks(
            [
                CodeBlock(language="python", code=code + "print(data['name'][0])"),
                CodeBlock(language="python", code="data.describe()"),
            ],
            CancellationToken(),
        )
        print(result.output)


if __name__ == "__main__":
    asyncio.run(main())
