"""AutoGen's executor of code blocks, over a session of ours."""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from itertools import takewhile
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, TypeVar
from uuid import uuid4

from ...client import AsyncSession, Result
from ...client.servers import Server
from ...errors import AgentExecError
from ..kernel_session import Life
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
if TYPE_CHECKING:
    from autogen_agentchat.agents import ApprovalResponse

T = TypeVar("T")

_PYTHON: Final = frozenset({"", "py", "python"})
"""What a block of Python may say that its language is."""

_ALL_PACKAGES: Final = 10_000


class JupyterCodeExecutor(CodeExecutor, Component[JupyterCodeExecutorConfig]):
    """Executes code blocks statefully in a kernel of a Jupyter server that keeps a history of it.

    It takes the place of ``autogen_ext.code_executors.jupyter.JupyterCodeExecutor``.

    Parameters
    ----------
    kernel_name
        Of a kernelspec that the server has.
    timeout
        Seconds that a block may run.
    output_dir
        Where images and HTML are written, and what `upload_files` and `download_files` take for
        this side; a new temporary folder when None, which stays.
    url
        The Jupyter server; ``JUPYTER_AGENT_EXEC_URL`` when None, else one that is started for this.
    token
        Its credential; ``JUPYTER_AGENT_EXEC_TOKEN`` when None.
    notebook
        Contents path of a notebook: blocks run in its kernel and become its cells.
    kernel_id
        Of a kernel that runs, for blocks to run in.
    agent
        The name of whoever asks, in the history.
    functions
        What blocks may call, by name or imported from `functions_module`.
    functions_module
        A module's name.

    Raises
    ------
    ValueError
        An argument is not what it should be.
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
        url: str | None = None,
        token: str | None = None,
        notebook: str | None = None,
        kernel_id: str | None = None,
        agent: str = "autogen",
        functions: Sequence[Function] = (),
        functions_module: str = "functions",
    ) -> None:
        if timeout < 1:
            raise ValueError("Timeout must be greater than or equal to 1.")
        if not functions_module.isidentifier():
            raise ValueError(f"functions_module is no name of a module: {functions_module!r}.")
        if url is not None:
            server = Server.at(url, token)
            url, token = server.address, server.token  # no secret stays in the address
        self._config = JupyterCodeExecutorConfig(
            kernel_name=kernel_name,
            timeout=timeout,
            output_dir=None if output_dir is None else str(output_dir),
            url=url,
            token=None if token is None else SecretStr(token),
            notebook=notebook,
            kernel_id=kernel_id,
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
        """Where images and HTML are written."""
        return self._output_dir

    @property
    def functions_module(self) -> str:
        """Where blocks may import the functions from."""
        return self._config.functions_module

    def format_functions_for_prompt(self, prompt_template: str = FUNCTION_PROMPT_TEMPLATE) -> str:
        """Tell a model which functions there are.

        Parameters
        ----------
        prompt_template
            ``$functions`` in it stands for their stubs.
        """
        stubs = "\n\n".join(each.stub for each in self._config.functions)
        return Template(prompt_template).substitute(functions=stubs)

    async def start(self) -> None:
        """Open the session, with its kernel; once it is open this does nothing.

        Raises
        ------
        ValueError
            A function does not load, or a package that it needs is not installed.
        AgentExecError
            The server refuses, for instance since it has no such kernel.
        ServerUnreachable
            There is no connection, or no server could be started.
        """
        if not self._started:
            with load_errors():
                await self._place.open_async()
            self._started = True

    async def stop(self) -> None:
        """Close the session, its kernel, and the server if it was started for this."""
        self._started = False
        self._own_restart = None
        self._approved.take_all()
        await self._place.close_async()

    async def restart(self) -> None:
        """Get a fresh kernel.

        Raises
        ------
        KernelNotOwned
            It is a person's.
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
            Each becomes an execution in the history.
        cancellation_token
            Stops the code.

        Raises
        ------
        RuntimeError
            The executor is not started.
        CodeTimeout
            A block ran for too long; an `asyncio.TimeoutError`.
        asyncio.CancelledError
            It was cancelled; the code has stopped.
        ValueError, AgentExecError, ServerUnreachable
            As `start`; nothing was run.
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
        """Have a person decide in JupyterLab, or on the command line, for `CodeExecutorAgent`.

        What is approved runs, and executing the blocks then returns what came of it. Nothing is
        approved if the server's policy, or the agent's token, does not say that people have to.

        Parameters
        ----------
        request
            What `CodeExecutorAgent` asks.

        Raises
        ------
        RuntimeError, AgentExecError, ServerUnreachable
            As `execute_code_blocks`.
        """
        self._require_start()
        sources = tuple(map(_source, takewhile(self._is_known, blocks(request.code))))
        key = uuid4().hex
        if not sources:
            return response(False, NOTHING_TO_RUN)
        with load_errors():
            first = await self._place.ask_async(sources, timeout=self.timeout, key=key)
        decided = decision(first)
        if decided.approved:
            self._approved.add(sources, key)
        return decided

    async def upload_files(
        self, files: Sequence[Path | str], cancellation_token: CancellationToken
    ) -> None:
        """Put files into the kernel's folder, under their own names; they replace what is there.

        Parameters
        ----------
        files
            Paths below `output_dir`, or absolute ones.
        cancellation_token
            Ends it.

        Raises
        ------
        FileNotFoundError
            One is not there; nothing was uploaded.
        """
        await self._do(
            "uploading files",
            lambda session: upload(session, files, self._output_dir),
            cancellation_token,
        )

    async def download_files(
        self, files: Sequence[Path | str], cancellation_token: CancellationToken
    ) -> list[str]:
        """Write files of the kernel's folder into `output_dir`, and return their paths there.

        Raises
        ------
        FileNotFoundError
            One is not there.
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
        token = None if config.token is None else config.token.get_secret_value()
        others = {name: getattr(config, name) for name in type(config).model_fields}
        return cls(**{**others, "token": token})

    def _require_start(self) -> None:
        if not self._started:
            raise RuntimeError("Executor must be started before executing cells")

    def _is_known(self, block: CodeBlock) -> bool:
        """Say whether the kernel runs this language, as far as its name tells."""
        is_python = self._config.kernel_name.startswith("python")
        return not is_python or block.language.lower() in _PYTHON

    async def _run(self, sources: tuple[str, ...], token: CancellationToken) -> list[Result]:
        key = self._approved.take(sources)
        try:
            with load_errors():
                return await _linked(
                    self._place.run_async(sources, timeout=self.timeout, key=key), token
                )
        except asyncio.CancelledError:
            # It may have been cancelled before it began to wait for what runs since its approval.
            if key is not None:
                await self._place.take_back_async(key)
            raise

    async def _do(
        self,
        doing: str,
        work: Callable[[AsyncSession], Awaitable[T]],
        cancellation_token: CancellationToken,
    ) -> T:
        """Do something else than executing, within the timeout."""
        self._require_start()
        try:
            return await _linked(self._within_timeout(work), cancellation_token)
        except TimeoutError as error:
            raise TimeoutError(f"Timeout {doing}") from error
        except asyncio.CancelledError as error:
            raise asyncio.CancelledError(f"{doing.capitalize()} cancelled") from error
        except AgentExecError as error:
            raise ConnectionError(f"Error while {doing}: {error}") from error

    async def _within_timeout(self, work: Callable[[AsyncSession], Awaitable[T]]) -> T:
        return await asyncio.wait_for(self._place.do_async(work), self.timeout)


async def _linked(doing: Coroutine[Any, Any, T], cancellation_token: CancellationToken) -> T:
    """Await what the token cancels."""
    task = asyncio.create_task(doing)
    cancellation_token.link_future(task)
    return await task


async def _restart(session: AsyncSession) -> Life | None:
    """Return which life of the session's kernel has begun."""
    await session.restart()
    kernel = session.info.kernel
    return None if kernel is None else (session.id, kernel.incarnation)


def _source(block: CodeBlock) -> str:
    """Return what runs of a block: `pip install` without what it would print."""
    if block.language.lower() in _PYTHON:
        return quiet(block.code)
    return str(block.code)


_BLOCK: Final = re.compile(r"```(?P<language>[^\n]*)\n(?P<code>.*?)\n```(?:\n\n|\Z)", re.DOTALL)

NOBODY_ASKED: Final = (
    "Nobody is asked: the approval policy of the Jupyter server lets this agent's code run as it "
    "is. A person can change that (`jupyter agent-exec policy`), or give the agent a token with "
    "`--approval always`."
)

NOTHING_TO_RUN: Final = "There is nothing in it that this executor runs."


class Approved:
    """What a person has approved and nobody waits for yet: the keys it was asked for with."""

    def __init__(self) -> None:
        self._keys: defaultdict[tuple[str, ...], deque[str]] = defaultdict(deque)

    def add(self, sources: tuple[str, ...], key: str) -> None:
        """Note that sources were approved; the same ones may be more than once."""
        self._keys[sources].append(key)

    def take(self, sources: tuple[str, ...]) -> str | None:
        """Return the oldest key of sources; None if these were not approved."""
        keys = self._keys.get(sources)
        if not keys:
            return None
        key = keys.popleft()
        if not keys:
            del self._keys[sources]
        return key

    def take_all(self) -> list[str]:
        """Return all keys."""
        keys = [key for each in self._keys.values() for key in each]
        self._keys.clear()
        return keys


def blocks(code: str) -> list[CodeBlock]:
    """Return the blocks that an approval is asked for; the agent never has a fence in one."""
    return [
        CodeBlock(code=each["code"], language=each["language"]) for each in _BLOCK.finditer(code)
    ]


def decision(first: Result | None) -> ApprovalResponse:
    """Return what was decided about the first block; None if nobody had to decide."""
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
    """Return an answer of the agent's own class."""
    with needed("autogen-agentchat>=0.5,<0.8"):
        from autogen_agentchat.agents import ApprovalResponse

    return ApprovalResponse(approved=approved, reason=reason)
