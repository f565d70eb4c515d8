"""The executor's configuration, which AutoGen dumps and loads."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from textwrap import dedent, indent
from typing import Any, Final, TypeAlias

from ...client import Preloadable, function
from ...errors import InitFailed, InvalidRequest
from ..kernel_session import KernelSession, SessionOptions, Target
from ..requirements import needed

with needed("autogen-ext[jupyter-executor]>=0.5,<0.8"):
    from autogen_core.code_executor import (
        Alias,
        FunctionWithRequirements,
        FunctionWithRequirementsStr,
        Import,
    )
    from pydantic import BaseModel, SecretStr, field_validator

_MASKED: Final = str(SecretStr("secret"))


class JupyterCodeExecutorConfig(BaseModel):
    """The configuration of a `JupyterCodeExecutor`."""

    kernel_name: str = "python3"
    timeout: int = 60
    output_dir: str | None = None
    url: str | None = None
    token: SecretStr | None = None
    """Masked in JSON. A configuration that is loaded from JSON uses the environment's token."""
    notebook: str | None = None
    kernel_id: str | None = None
    agent: str = "autogen"
    functions: list[FunctionConfig] = []
    functions_module: str = "functions"

    def target(self) -> Target:
        """Return where code runs."""
        return Target(
            url=self.url,
            token=None if self.token is None else self.token.get_secret_value(),
            notebook=self.notebook,
            kernel_id=self.kernel_id,
        )

    @field_validator("token")
    @classmethod
    def _left_to_the_environment(cls, token: SecretStr | None) -> SecretStr | None:
        """Return None for a token that was masked in JSON."""
        return None if token is not None and token.get_secret_value() == _MASKED else token


def workplace(config: JupyterCodeExecutorConfig) -> KernelSession:
    """Return the session of an executor."""
    return KernelSession(
        config.target(),
        SessionOptions(
            agent=config.agent,
            kernel_name=config.kernel_name,
            timeout=config.timeout,
            preload=to_preload(config.functions),
            init_source=module_source(config.functions_module, config.functions),
        ),
    )


_MODULE: Final = """\
def _make_functions_module():
    import sys
    from types import ModuleType

    module = ModuleType({name!r})
    module.__dict__.update({{each.__name__: each for each in ({functions},)}})
    sys.modules[{name!r}] = module


_make_functions_module()
del _make_functions_module
"""


class FunctionConfig(BaseModel):
    """A function in a configuration. It can be stored and loaded again."""

    source: str
    """The function's definition."""
    imports: list[str] = []
    """Import statements that the function needs."""
    python_packages: list[str] = []
    """Requirements that must be installed in the kernel's environment."""
    name: str
    stub: str
    """The function's signature and docstring, for a model."""


Function: TypeAlias = (
    Callable[..., Any]
    | FunctionWithRequirements[Any, Any]
    | FunctionWithRequirementsStr
    | FunctionConfig
)


def described(given: Function) -> FunctionConfig:
    """Return the configuration of a function.

    Raises
    ------
    ValueError
        The function cannot be sent to another process, such as a lambda.
    """
    if isinstance(given, FunctionConfig):
        return given
    try:
        return _described(given)
    except (InvalidRequest, SyntaxError) as error:
        raise ValueError(f"Functions failed to load: {error}") from error


def to_preload(functions: Iterable[FunctionConfig]) -> list[Preloadable]:
    """Return the functions in the form that a session preloads into its kernels."""
    return [
        function(each.source, requirements=each.python_packages, imports=each.imports)
        for each in functions
    ]


def module_source(name: str, functions: Iterable[FunctionConfig]) -> str | None:
    """Return code that makes preloaded functions importable from a module `name`.

    The code defines no other names. Returns None if there are no functions.
    """
    names = ", ".join(each.name for each in functions)
    return _MODULE.format(name=name, functions=names) if names else None


@contextmanager
def load_errors() -> Iterator[None]:
    """Turn errors of loading functions into AutoGen's errors."""
    try:
        yield
    except InitFailed as error:
        raised = error.detail.get("error") or {}
        if raised.get("ename") == "ModuleNotFoundError":
            missing = f"Packages unavailable in environment: {raised['evalue']}"
            raise ValueError(missing) from error
        raise ValueError(f"Functions failed to load: {error}") from error
    except InvalidRequest as error:
        if not str(error.detail.get("field", "")).startswith("preload"):
            raise
        raise ValueError(f"Functions failed to load: {error}") from error


def _described(given: Any) -> FunctionConfig:
    packages: list[str] = []
    imports: list[str] = []
    called = given
    if isinstance(given, (FunctionWithRequirements, FunctionWithRequirementsStr)):
        packages = list(given.python_packages)
        imports = [_statement(each) for each in given.global_imports]
    if isinstance(given, FunctionWithRequirementsStr):
        called, text, decorators = given.compiled_func, given.func, 0
    else:
        called = given.func if isinstance(given, FunctionWithRequirements) else given
        # The first decorator only declares requirements. AutoGen drops it too.
        text, decorators = function(called).source, 1
    definition, more_imports = _parts(text, decorators)
    return FunctionConfig(
        source=definition,
        imports=imports + more_imports,
        python_packages=packages,
        name=called.__name__,
        stub=_stub(called),
    )


def _statement(needed_import: Import) -> str:
    if isinstance(needed_import, str):
        return f"import {needed_import}"
    if isinstance(needed_import, Alias):
        return f"import {_name(needed_import)}"
    names = ", ".join(map(_name, needed_import.imports))
    return f"from {needed_import.module} import {names}"


def _name(imported: str | Alias) -> str:
    if isinstance(imported, str):
        return imported
    return f"{imported.name} as {imported.alias}"


def _parts(text: str, decorators: int) -> tuple[str, list[str]]:
    """Return a definition without its first `decorators` decorators, and the imports around it."""
    body = ast.parse(dedent(text)).body
    imports = [each for each in body if isinstance(each, (ast.Import, ast.ImportFrom))]
    others = [each for each in body if each not in imports]
    if len(others) != 1 or not isinstance(others[0], (ast.FunctionDef, ast.AsyncFunctionDef)):
        raise InvalidRequest("one function definition is needed, and imports at most beside it.")
    others[0].decorator_list = others[0].decorator_list[decorators:]
    lines = [f"@{ast.unparse(each)}" for each in others[0].decorator_list]
    lines.append(ast.get_source_segment(dedent(text), others[0]) or ast.unparse(others[0]))
    return "\n".join(lines), [ast.unparse(each) for each in imports]


def _stub(called: Callable[..., Any]) -> str:
    lines = [f"def {called.__name__}{inspect.signature(called)}:"]
    if called.__doc__:
        lines.append(indent(f'"""{dedent(called.__doc__)}"""', "    "))
    return "\n".join([*lines, "    ..."])
