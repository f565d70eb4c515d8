"""AutoGen's code executor, which runs blocks in an agent session."""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections import defaultdict, deque
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, TypeVar
from uuid import uuid4

from ...client import Result, Session
from ...client.servers import Server
from ...errors import AgentExecError
from ..kernel_session import SCRATCH, Life, Target
from ..requirements import needed
from ..result_pieces import quiet
from .code_results import answer, download, file_names, upload
from .config import Function, JupyterCodeExecutorConfig, described, load_errors, workplace

with needed("autogen-ext[jupyter-executor]>=0.5,<0.8"):
    from autogen_core import CancellationToken, Component
    from autogen_core.code_executor import CodeBlock, CodeExecutor
    from autogen_ext.code_executors.jupyter import JupyterCodeResult
    from pydantic import SecretStr

if TYPE_CHECKING:
    from autogen_agentchat.agents import ApprovalRequest, ApprovalResponse

T = TypeVar("T")

_PYTHON: Final = frozenset({"", "py", "python"})
"""Languages of a block that mean Python."""

_ALL_PACKAGES: Final = 10_000


class JupyterCodeExecutor(CodeExecutor, Component[JupyterCodeExecutorConfig]):
    """Executes code blocks in the kernel of a Jupyter server that records each execution.

    Variables persist between blocks. It replaces
    ``autogen_ext.code_executors.jupyter.JupyterCodeExecutor``.

    Parameters
    ----------
    kernel_name
        Name of a kernelspec on the server.
    timeout
        Seconds that a block may run.
    output_dir
        Local folder for images and HTML, and for `upload_files` and `download_files`. When None, a
        new temporary folder, which is not deleted.
    target
        Where blocks run. The default is a scratch kernel.
    agent
        The agent's name in the history.
    functions
        Functions that blocks may call by name, or import from `functions_module`.
    functions_module
        Name of the module for `functions`.

    Raises
    ------
    ValueError
        An argument is invalid.
    """

    component_config_schema = JupyterCodeExecutorConfig
    component_provider_override = "jupyter_agent_exec.adapters.autogen.JupyterCodeExecutor"

    SUPPORTED_LANGUAGES: ClassVar[list[str]] = ["python"]
    FUNCTION_PROMPT_TEMPLATE: ClassVar[
        str
    ] = """You have access to the following user defined functions.

$functions"""

    def __init__(
        self,
        kernel_name: str = "python3",
        timeout: int = 60,
        output_dir: Path | str | None = None,
        *,
        target: Target = SCRATCH,
        agent: str = "autogen",
        functions: Sequence[Function] = (),
        functions_module: str = "functions",
    ) -> None:
        if timeout < 1:
            raise ValueError("Timeout must be greater than or equal to 1.")
        if not functions_module.isidentifier():
            raise ValueError(f"functions_module is no name of a module: {functions_module!r}.")
        if target.url is not None:
            server = Server.at(target.url, target.token)  # keeps the token out of the URL
            target = replace(target, url=server.address, token=server.token)
        self._config = JupyterCodeExecutorConfig(
            kernel_name=kernel_name,
            timeout=timeout,
            output_dir=None if output_dir is None else str(output_dir),
            url=target.url,
            token=None if target.token is None else SecretStr(target.token),
            notebook=target.notebook,
            kernel_id=target.kernel_id,
            agent=agent,
            functions=[described(each) for each in functions],
            functions_module=functions_module,
        )
        self._output_dir = Path(output_dir or tempfile.mkdtemp(prefix="autogen-"))
        self._output_dir.mkdir(parents=True, exist_ok=True)
        self._place = workplace(self._config)
        self._started = False
        self._own_restart: Life | None = None
        """The life of the session's kernel that began with the last `restart`."""
        self._approved = Approved()

    @property
    def timeout(self) -> int:
        """Seconds that a block may run."""
        return self._config.timeout

    @property
    def output_dir(self) -> Path:
        """The folder for images and HTML."""
        return self._output_dir

    @property
    def work_dir(self) -> Path:
        """The same folder, under its name in AutoGen's other executors."""
        return self._output_dir

    @property
    def functions(self) -> list[str]:
        """The names of the functions that blocks may call."""
        return [each.name for each in self._config.functions]

    @property
    def functions_module(self) -> str:
        """The module from which blocks may import the functions."""
        return self._config.functions_module

    def format_functions_for_prompt(self, prompt_template: str = FUNCTION_PROMPT_TEMPLATE) -> str:
        """Return a prompt that lists the functions for a model.

        Parameters
        ----------
        prompt_template
            Template in which ``$functions`` stands for the functions' stubs.
        """
        stubs = "\n\n".join(each.stub for each in self._config.functions)
        return Template(prompt_template).substitute(functions=stubs)

    async def start(self) -> None:
        """Open the session and its kernel. Does nothing if it is open.

        Raises
        ------
        ValueError
            A function cannot be loaded, or a package that it needs is not installed.
        AgentExecError
            The server refused, for example because it has no such kernel.
        ServerUnreachable
            The server cannot be reached or started.
        """
        if not self._started:
            with load_errors():
                await self._place.open_async()
            self._started = True

    async def stop(self) -> None:
        """Close the session, its kernel, and the server if this executor started it."""
        self._started = False
        self._own_restart = None
        self._approved.take_all()
        await self._place.close_async()

    async def restart(self) -> None:
        """Restart the kernel.

        Raises
        ------
        KernelNotOwned
            The kernel belongs to a user.
        """
        if not self._started:
            await self.start()
        else:
            for key in self._approved.take_all():
                await self._place.take_back_async(key)
            with load_errors():
                self._own_restart = await self._place.do_async(_restart)

    async def execute_code_blocks(
        self, code_blocks: list[CodeBlock], cancellation_token: CancellationToken
    ) -> JupyterCodeResult:
        """Execute blocks in order, up to the first that fails.

        Parameters
        ----------
        code_blocks
            The blocks. Each becomes an execution in the history.
        cancellation_token
            Stops the code when it is cancelled.

        Raises
        ------
        RuntimeError
            The executor was not started.
        CodeTimeout
            A block ran too long. This is an `asyncio.TimeoutError`.
        asyncio.CancelledError
            The call was cancelled, and the code has stopped.
        ValueError, AgentExecError, ServerUnreachable
            As for `start`; no code ran.
        """
        self._require_start()
        known = list(takewhile(self._is_known, code_blocks))
        results: list[Result] = []
        if known:
            results = await self._run(tuple(map(_source, known)), cancellation_token)
        told = answer(results, self._output_dir, own_restart=self._own_restart)
        if told.exit_code == 0 and len(known) < len(code_blocks):
            told.exit_code = 1
            unknown = f"unknown language {code_blocks[len(known)].language}"
            told.output = "\n".join([told.output, unknown] if known else [unknown])
        return told

    async def approval_func(self, request: ApprovalRequest) -> ApprovalResponse:
        """Ask the user for approval in JupyterLab or on the command line, for `CodeExecutorAgent`.

        Approved blocks start to run. `execute_code_blocks` with the same blocks then returns their
        results. If neither the server's policy nor the agent's token requires approval, the request
        is not approved.

        Parameters
        ----------
        request
            The request of `CodeExecutorAgent`.

        Raises
        ------
        RuntimeError, AgentExecError, ServerUnreachable
            As for `execute_code_blocks`.
        """
        self._require_start()
        sources = tuple(map(_source, takewhile(self._is_known, blocks(request.code))))
        key = uuid4().hex
        if not sources:
            return response(False, NOTHING_TO_RUN)
        with load_errors():
            first = await self._place.ask_async(sources, key=key)
        decided = decision(first)
        if decided.approved:
            self._approved.add(sources, key)
        return decided

    async def upload_files(
        self, files: Sequence[Path | str], cancellation_token: CancellationToken
    ) -> None:
        """Upload files into the kernel's folder under their own names, and replace existing files.

        Parameters
        ----------
        files
            Paths below `output_dir`, or absolute ones.
        cancellation_token
            Ends the wait when it is cancelled. A file that is on its way arrives.

        Raises
        ------
        FileNotFoundError
            A file is missing; nothing was uploaded.
        """
        await self._do(
            "uploading files",
            lambda session: upload(session, files, self._output_dir),
            cancellation_token,
        )

    async def download_files(
        self, files: Sequence[Path | str], cancellation_token: CancellationToken
    ) -> list[str]:
        """Download files of the kernel's folder into `output_dir`, and return their paths there.

        Raises
        ------
        FileNotFoundError
            A file is missing.
        """
        return await self._do(
            "downloading files",
            lambda session: download(session, files, self._output_dir),
            cancellation_token,
        )

    async def get_file_list(self, cancellation_token: CancellationToken) -> list[str]:
        """Return the names of the files in the kernel's folder."""
        return await self._do("getting file list", file_names, cancellation_token)

    async def get_available_packages(self, cancellation_token: CancellationToken) -> set[str]:
        """Return the names of the distributions that blocks can import."""
        found = await self._do(
            "getting list of available packages",
            lambda session: session.packages(limit=_ALL_PACKAGES),
            cancellation_token,
        )
        return {each.name for each in found.packages}

    def _to_config(self) -> JupyterCodeExecutorConfig:
        return self._config

    @classmethod
    def _from_config(cls, config: JupyterCodeExecutorConfig) -> Self:
        return cls(
            config.kernel_name,
            config.timeout,
            config.output_dir,
            target=config.target(),
            agent=config.agent,
            functions=config.functions,
            functions_module=config.functions_module,
        )

    def _require_start(self) -> None:
        if not self._started:
            raise RuntimeError("Executor must be started before executing cells")

    def _is_known(self, block: CodeBlock) -> bool:
        """Return whether the kernel runs a block's language, judging by the kernel's name."""
        is_python = self._config.kernel_name.startswith("python")
        return not is_python or block.language.lower() in _PYTHON

    async def _run(self, sources: tuple[str, ...], token: CancellationToken) -> list[Result]:
        key = self._approved.take(sources)
        try:
            with load_errors():
                return await _linked(self._place.run_async(sources, key=key), token)
        except asyncio.CancelledError:
            # Approved code already runs. The call may be cancelled before it waits for that code.
            if key is not None:
                await self._place.take_back_async(key)
            raise

    async def _do(
        self,
        doing: str,
        work: Callable[[Session], T],
        cancellation_token: CancellationToken,
    ) -> T:
        """Do other work than executing code, within the timeout."""
        self._require_start()
        try:
            return await _linked(self._within_timeout(work), cancellation_token)
        except TimeoutError as error:
            raise TimeoutError(f"Timeout {doing}") from error
        except asyncio.CancelledError as error:
            raise asyncio.CancelledError(f"{doing.capitalize()} cancelled") from error
        except AgentExecError as error:
            raise ConnectionError(f"Error while {doing}: {error}") from error

    async def _within_timeout(self, work: Callable[[Session], T]) -> T:
        return await asyncio.wait_for(self._place.do_async(work), self.timeout)


async def _linked(doing: Coroutine[Any, Any, T], cancellation_token: CancellationToken) -> T:
    """Await a coroutine that the token can cancel."""
    task = asyncio.create_task(doing)
    cancellation_token.link_future(task)
    return await task


def _restart(session: Session) -> Life | None:
    """Restart the kernel, and return its new life."""
    session.restart()
    kernel = session.info.kernel
    return None if kernel is None else (session.id, kernel.incarnation)


def _source(block: CodeBlock) -> str:
    """Return the code to run for a block. `pip install` is made quiet."""
    if block.language.lower() in _PYTHON:
        return quiet(block.code)
    return str(block.code)


_BLOCK: Final = re.compile(r"```(?P<language>[^\n]*)\n(?P<code>.*?)\n```(?:\n\n|\Z)", re.DOTALL)

NOBODY_ASKED: Final = (
    "Nobody is asked: the approval policy of the Jupyter server lets this agent's code run as it "
    "is. A person can change that in JupyterLab, or give the agent a token (`jupyter agent-exec "
    "token create --approval always`)."
)

NOTHING_TO_RUN: Final = "There is nothing in it that this executor runs."


class Approved:
    """The keys of approved sources whose results no caller waits for yet."""

    def __init__(self) -> None:
        self._keys: defaultdict[tuple[str, ...], deque[str]] = defaultdict(deque)

    def add(self, sources: tuple[str, ...], key: str) -> None:
        """Add approved sources. The same sources may be approved more than once."""
        self._keys[sources].append(key)

    def take(self, sources: tuple[str, ...]) -> str | None:
        """Remove and return the oldest key of sources; None if they were not approved."""
        keys = self._keys.get(sources)
        if not keys:
            return None
        key = keys.popleft()
        if not keys:
            del self._keys[sources]
        return key

    def take_all(self) -> list[str]:
        """Remove and return all keys."""
        keys = [key for each in self._keys.values() for key in each]
        self._keys.clear()
        return keys


def blocks(code: str) -> list[CodeBlock]:
    """Return the blocks of an approval request. A block never contains a fence."""
    return [
        CodeBlock(code=each["code"], language=each["language"]) for each in _BLOCK.finditer(code)
    ]


def decision(first: Result | None) -> ApprovalResponse:
    """Return the user's decision about the first block as AutoGen's response.

    Parameters
    ----------
    first
        The first block's result; None if no approval was needed.
    """
    if first is None:
        return response(False, NOBODY_ASKED)
    approval = first.execution.approval
    if approval is None:
        return response(True, "A person approved what this agent does.")
    if approval.status != "approved":
        reason = approval.reason or first.execution.reason or f"It is {approval.status}."
        return response(False, reason)
    return response(True, f"{approval.decided_by} approved it.")


def response(approved: bool, reason: str) -> ApprovalResponse:
    """Return an instance of AutoGen's response class."""
    with needed("autogen-agentchat>=0.5,<0.8"):
        from autogen_agentchat.agents import ApprovalResponse

    return ApprovalResponse(approved=approved, reason=reason)
