"""Pantheon's tools, and the choice of an interpreter for each call.

Pantheon reads the types of the tools' parameters, so this module does not postpone annotations.
"""

import functools
import threading
from collections.abc import Callable, Coroutine, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar
from uuid import uuid4

from ...client import Preloadable
from ...errors import InitFailed
from ..kernel_session import SCRATCH, KernelSession, SessionOptions, Target
from ..requirements import needed
from .interpreter import DEFAULT_INIT_CODE, Interpreter, PythonInterpreterError, init_source

with needed("pantheon-agents~=0.6.0"):
    from pantheon.internal.package_runtime.context import build_context_env
    from pantheon.toolset import (
        ExecutionContext,
        ToolSet,
        _current_context_variables,
        reset_current_context_variables,
        set_current_context_variables,
        tool,
    )

P = ParamSpec("P")
T = TypeVar("T")

_ADDING: Final = threading.Lock()
"""A module's lock, because Pantheon pickles tool sets to processes, and locks do not pickle."""


def _apart(method: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Give each call of a tool a context of its own.

    Pantheon's decorator writes the context into one dictionary for all calls of a process. Without
    this, a call without a chat would get the chat of the previous call.
    """

    @functools.wraps(method)
    async def call(*args: P.args, **kwargs: P.kwargs) -> T:
        given = kwargs.get("context_variables") is not None or bool(kwargs.get("session_id"))
        around = None if given else _current_context_variables.get(None)
        token = set_current_context_variables(ExecutionContext(around or {}))
        try:
            return await method(*args, **kwargs)
        finally:
            reset_current_context_variables(token)

    return call


class PythonInterpreterToolSet(ToolSet):  # type: ignore[misc]
    """Python interpreters of Pantheon's agents, in Jupyter kernels.

    Each client, or chat, has an interpreter of its own, which starts at its first use. `cleanup`,
    or the end of ``async with``, closes all of them.

    Parameters
    ----------
    name
        Name of the tool set.
    workdir
        Folder in which code runs and figures are saved; the current folder when None.
    engine
        Accepted for compatibility, and ignored.
    init_code
        Code that runs when an interpreter starts. The default does not run in a user's kernel.
    timeout
        Seconds that code may run; the server's limit when None.
    target
        Where code runs. The default is a scratch kernel for each interpreter.
    agent
        The agent's name in the history.
    preload
        Names of modules, and functions, to preload into each interpreter.
    **kwargs
        Arguments of Pantheon's worker.
    """

    def __init__(
        self,
        name: str,
        workdir: str | PathLike[str] | None = None,
        engine: object | None = None,
        init_code: str | None = DEFAULT_INIT_CODE,
        *,
        timeout: float | None = None,
        target: Target = SCRATCH,
        agent: str | None = None,
        preload: Sequence[Preloadable] = (),
        **kwargs: Any,
    ) -> None:
        if kwargs.get("shared_executor") is not None:
            raise ValueError("shared_executor: code runs in Jupyter kernels here, nowhere else.")
        kwargs.pop("shared_executor", None)
        super().__init__(name, **kwargs)
        self.engine = engine
        self.init_code = init_code
        self.workdir = Path(workdir).expanduser().resolve() if workdir else Path.cwd()
        self.interpreters: dict[str, Interpreter] = {}
        self.clientid_to_interpreterid: dict[str | None, str] = {}
        self._has_workdir = bool(workdir)
        self._target = target
        self._agent = agent or "pantheon"
        self._timeout = timeout
        self._preload = preload

    # Models read the docstrings of tools.

    @_apart
    @tool
    async def run_python_code(
        self,
        code: str,
        interpreter_id: str | None = None,
        result_var_name: str | None = None,
    ) -> dict[str, Any]:
        """Run Python code in an interpreter that keeps its variables from call to call.

        Every expression on the top level of the code that is not None is printed. All figures are
        returned; no call of plt.show() is needed. In the answer, "interpreter_restarted" says that
        all variables of earlier calls are gone, "interpreter_crashed" that this code has ended the
        interpreter; the next call starts another.

        Args:
            code: The Python code to run.
            interpreter_id: The id of another interpreter than the one you have by default.
                Needed only to work with several at once.
            result_var_name: The name of a variable whose value is to be returned as "result".
        """
        interpreter = self._known(interpreter_id) if interpreter_id else self._own()
        return await interpreter.run(code, result_var_name)

    @_apart
    @tool(exclude=True)
    async def run_code_in_interpreter(
        self,
        code: str,
        interpreter_id: str,
        result_var_name: str | None = None,
    ) -> dict[str, Any]:
        """Run Python code in one of several interpreters.

        Args:
            code: The Python code to run.
            interpreter_id: The id of the interpreter.
            result_var_name: The name of a variable whose value is to be returned as "result".
        """
        return await self._known(interpreter_id).run(code, result_var_name)

    @_apart
    @tool
    async def manage_interpreters(
        self, operation: str, interpreter_id: str | None = None
    ) -> dict[str, Any]:
        """Create, list or delete Python interpreters.

        Args:
            operation: "create", "list" or "delete".
            interpreter_id: The id of the interpreter to delete.
        """
        if operation == "create":
            return await self._create()
        if operation == "list":
            return await self._list()
        if operation != "delete":
            return _failed(f"Unknown operation: {operation}")
        if interpreter_id is None:
            return _failed("interpreter_id is required for delete operation")
        return await self._delete(interpreter_id)

    @_apart
    @tool(exclude=True)
    async def new_interpreter(self) -> dict[str, Any]:
        """Create a Python interpreter and return its id."""
        return await self._create()

    @_apart
    @tool(exclude=True)
    async def delete_interpreter(self, interpreter_id: str) -> dict[str, Any]:
        """Delete a Python interpreter.

        Args:
            interpreter_id: The id of the interpreter.
        """
        return await self._delete(interpreter_id)

    @_apart
    @tool(exclude=True)
    async def list_interpreters(self) -> dict[str, Any]:
        """List the Python interpreters."""
        return await self._list()

    async def cleanup(self) -> None:
        """Close all interpreters, and the server if it was started here. Calls start new ones."""
        with _ADDING:
            interpreters = list(self.interpreters.values())
            self.interpreters.clear()
            self.clientid_to_interpreterid.clear()
        for interpreter in interpreters:
            await interpreter.place.close_async()

    async def __aenter__(self) -> "PythonInterpreterToolSet":
        """Return the tool set itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close all interpreters."""
        await self.cleanup()

    async def _create(self) -> dict[str, Any]:
        with _ADDING:
            interpreter_id = self._add(self._client())
        try:
            await self.interpreters[interpreter_id].place.open_async()
        except BaseException as error:
            await self._delete(interpreter_id)
            if isinstance(error, InitFailed):
                raise PythonInterpreterError(str(error)) from error
            raise
        return {"success": True, "interpreter_id": interpreter_id}

    async def _list(self) -> dict[str, Any]:
        client = self._client()
        with _ADDING:
            known = [item for item in self.interpreters.items() if item[1].serves(client)]
        interpreters = [{"id": id, "status": await each.status()} for id, each in known]
        return {"success": True, "interpreters": interpreters}

    async def _delete(self, interpreter_id: str) -> dict[str, Any]:
        with _ADDING:
            interpreter = self.interpreters.get(interpreter_id)
            if interpreter is None or not interpreter.serves(self._client()):
                return _failed(f"Interpreter {interpreter_id} not found")
            del self.interpreters[interpreter_id]
        await interpreter.place.close_async()
        return {"success": True, "interpreter_id": interpreter_id}

    def _client(self) -> str | None:
        """Return the client that calls; None for the program itself."""
        context = self.get_context() or {}
        client = context.get("chat_id") or context.get("client_id")
        return str(client) if client else None

    def _own(self) -> Interpreter:
        """Return the default interpreter of the client."""
        client = self._client()
        with _ADDING:
            interpreter_id = self.clientid_to_interpreterid.get(client)
            if interpreter_id not in self.interpreters:
                interpreter_id = self._add(client)
                self.clientid_to_interpreterid[client] = interpreter_id
            return self.interpreters[interpreter_id]

    def _known(self, interpreter_id: str) -> Interpreter:
        interpreter = self.interpreters.get(interpreter_id)
        if interpreter is None or not interpreter.serves(self._client()):
            raise ValueError(f"Interpreter {interpreter_id} not found")
        return interpreter

    def _add(self, client: str | None) -> str:
        """Add an interpreter, which starts at its first use."""
        asked_folder = self._get_effective_workdir()
        folder = Path(asked_folder).expanduser().resolve() if asked_folder else self.workdir
        options = SessionOptions(
            agent=self._agent,
            title=self.toolset_name if client is None else f"{self.toolset_name}: {client}",
            folder=self.workdir,
            init_source=self._init_source(folder if asked_folder or self._has_workdir else None),
            preload=self._preload,
        )
        interpreter_id = uuid4().hex
        self.interpreters[interpreter_id] = Interpreter(
            place=KernelSession(self._target, options),
            client=client,
            folder=folder,
            timeout=self._timeout,
        )
        return interpreter_id

    def _init_source(self, folder: Path | None) -> str | None:
        if not self._target.is_scratch:
            # Do not change how a user's kernel displays values.
            return None if self.init_code is DEFAULT_INIT_CODE else self.init_code
        env = build_context_env(
            workdir=folder or self.workdir, context_variables=dict(self.get_context() or {})
        )
        return init_source(None if folder is None else str(folder), env, self.init_code)


def _failed(error: str) -> dict[str, Any]:
    return {"success": False, "error": error}
