"""AutoGen 0.2: code blocks run one after the other, and their kernel keeps its state."""

from __future__ import annotations

from autogen.coding import CodeBlock

from jupyter_agent_exec.adapters.autogen02 import EmbeddedIPythonCodeExecutor

DEFINITION = """
def fibonacci(n):
    a, b = 0, 1
    for _ in range(n):
        yield a
        a, b = b, a + b
"""


def main() -> None:
    """Print the first Fibonacci numbers, and what comes of a mistake."""
    with EmbeddedIPythonCodeExecutor(timeout=30, preload_modules=["math"]) as executor:
        for source in (DEFINITION, "list(fibonacci(10))", "math.gcd(*fibonacci(0.5))"):
            result = executor.execute_code_blocks([CodeBlock(language="python", code=source)])
            print(f"exit code {result.exit_code}: {result.output}")


if __name__ == "__main__":
    main()
