"""The configuration of the extension."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final, cast

from jupyter_core.paths import jupyter_data_dir
from traitlets import (
    Bool,
    Bunch,
    Dict,
    Enum,
    Float,
    Int,
    List,
    TraitError,
    Type,
    Unicode,
    default,
    validate,
)
from traitlets.config import Config

from .approvals.manager import Approvals
from .auth.unlocks import is_slow_hash
from .executions.limits import SessionLimits, Settings
from .executions.rules import Modes, checked_modes
from .files.manager import SessionFiles
from .journal.retention import make_rules
from .kernels.person_executions import PersonRecording
from .mcp.endpoint import McpTraits
from .notebooks.manager import NotebookManager
from .sessions.manager import AgentSessions
from .text.redaction_traits import RedactionTraits
from .types import RecordPeople

_TIMESTAMPS: Final = (
    "Set `sign_heads`, and have the signed heads timestamped with `openssl ts`, as the "
    "documentation shows where it says how to audit."
)
REMOVED: Final = {
    "allow_completion": "Kernels do not complete or document for agents any more: they run "
    "`help(x)`, which is recorded and asks as all code does.",
    "record_changes": "The variables that an execution changed are recorded in users' kernels, and "
    "not in scratch kernels.",
    "record_people_in": "`record_people` alone says what is recorded: the code that users run in a "
    "kernel while an agent session is attached to it.",
    "timestamp_authority": _TIMESTAMPS,
    "timestamp_interval": _TIMESTAMPS,
}
"""Traits that earlier versions had, and what replaced them."""


def refuse_removed(config: Config, sections: Iterable[str]) -> None:
    """Raise TraitError if a section of the configuration sets a trait that was removed.

    A trait that is not known would only be ignored with a warning, and the operator would believe
    that it holds.
    """
    for name in (name for section in sections for name in config.get(section, ())):
        if name in REMOVED:
            raise TraitError(f"{name}: it was removed. {REMOVED[name]}")


class AgentExecTraits(McpTraits, RedactionTraits):
    """The traits of the extension, without those of leaves."""

    history_dir = Unicode(
        config=True,
        help="""Folder of the history: journals, ledger, blobs and index. Keep it outside of the
        folder that the server serves. Default: `agent_exec` in Jupyter's data directory.""",
    )

    @default("history_dir")
    def _default_history_dir(self) -> str:
        return str(Path(jupyter_data_dir()) / "agent_exec")

    retention = List(
        Dict(),
        config=True,
        help="""Which closed sessions are removed from the record when no code runs: a list of
        rules, such as `{"days": 90, "target": ["scratch"], "status": ["ok"]}` (closed for 90 days,
        and all executions ended so). A session goes if all that a rule says is true of it. Default:
        nothing is removed.""",
    )

    @validate("retention")
    def _check_retention(self, proposal: Bunch) -> list[dict[str, object]]:
        try:
            make_rules(proposal.value)
        except ValueError as error:
            raise TraitError(str(error)) from None
        return list(proposal.value)

    trials = Enum(
        ("off", "on"),
        "on",
        config=True,
        help="""Whether agents may run code in a sealed copy of a kernel (`trial`). It sees the
        kernel's variables and the files in the served folder, and changes nothing, so nobody has to
        approve it. Trials need Linux with Landlock; elsewhere they are refused.""",
    )
    trial_memory_bytes = Int(
        4 << 30,
        min=64 << 20,
        config=True,
        help="The most memory, in bytes, that a trial may use in addition to its kernel's.",
    )

    previews = Bool(
        True,
        config=True,
        help="""Whether code that waits for approval runs as a trial first, to show you what it
        would print and change before you decide.""",
    )

    session_manager_class = Type(
        AgentSessions,
        config=True,
        help="Class that manages agent sessions and their executions.",
    )
    approval_manager_class = Type(
        Approvals, config=True, help="Class that manages what users approve."
    )
    notebook_manager_class = Type(
        NotebookManager, config=True, help="Class that reads and edits notebooks for agents."
    )
    file_manager_class = Type(
        SessionFiles, config=True, help="Class that manages the files of sessions."
    )

    default_timeout = Float(
        600,
        min=0.1,
        config=True,
        help="Seconds an execution may run if its request sets no timeout.",
    )
    max_timeout = Float(
        0,
        min=0,
        config=True,
        help="Seconds an execution may run at most, whatever its request says; 0: no limit.",
    )
    queue_timeout = Float(
        0,
        min=0,
        config=True,
        help="""Seconds an execution may wait for its turn if its request sets no limit; 0: no
        limit.""",
    )
    interrupt_grace = Float(
        5,
        min=0.1,
        config=True,
        help="Seconds after an interrupt; code that still runs then counts as ignoring it.",
    )
    restart_if_interrupt_ignored = Bool(
        False,
        config=True,
        help="""Whether to replace a scratch kernel whose code ignores an interrupt, if the session
        does not set it. True: the kernel's variables are lost. False: the session waits until the
        code ends.""",
    )
    max_output_bytes = Int(
        10_000_000,
        min=1000,
        config=True,
        help="""The most bytes of output that are kept with a cell: half from the start, half from
        the end.""",
    )
    max_text_bytes = Int(
        100_000_000,
        min=0,
        config=True,
        help="Bytes of text kept beside a cell whose output exceeds max_output_bytes.",
    )
    max_body_bytes = Int(
        5_000_000, min=1000, config=True, help="The largest request body, in bytes."
    )
    max_file_bytes = Int(
        100_000_000,
        min=1000,
        config=True,
        help="The largest file that an agent may upload into its session's folder, in bytes.",
    )
    max_sessions = Int(
        100,
        min=1,
        config=True,
        help="""How many agent sessions may be open at once. One agent token may use half of
        them.""",
    )
    max_queued = Int(
        100, min=1, config=True, help="How many executions may wait in one session at once."
    )
    default_wait = Float(
        30,
        min=0,
        config=True,
        help="""Seconds that the server holds an answer until an execution finishes, if the request
        sets no `wait`.""",
    )
    max_wait = Float(
        60,
        min=0,
        config=True,
        help="""The longest time that an answer is held, in seconds. Keep it below the timeout of
        every proxy.""",
    )
    max_held_answers = Int(
        400,
        min=1,
        config=True,
        help="""How many answers and streams all agent tokens together may hold open at once. One
        token may use half of them. Requests with a person's own credential are counted separately,
        with the same limit.""",
    )
    send_timeout = Float(
        60,
        min=0.1,
        config=True,
        help="""Seconds within which a client must take the next piece (at most about 130 kB) of a
        long answer or a stream. After that, its connection is closed.""",
    )
    allowed_env = List(
        Unicode(),
        config=True,
        help="Names of the environment variables that a session may set for its scratch kernel.",
    )
    warm_kernels = Int(
        1,
        min=0,
        config=True,
        help="""How many scratch kernels to keep warm after the first one was used, so that the next
        similar session opens at once; 0: none.""",
    )
    kernel_start_timeout = Float(
        60, min=1, config=True, help="Seconds within which a scratch kernel must answer."
    )
    kernel_idle_timeout = Float(
        3600,
        min=0,
        config=True,
        help="""Seconds after which an idle scratch kernel or an unused warm kernel is shut down;
        0: never. The session stays open and gets a fresh kernel when it needs one.""",
    )
    session_idle_timeout = Float(
        14_400,
        min=0,
        config=True,
        help="""Seconds after which an unused session is closed, if none of its executions waits or
        runs and it has no scratch kernel; 0: never. A notebook's kernel stays. You can still read
        what the session ran.""",
    )

    allow_full_access = Bool(
        True,
        config=True,
        help="""Whether programs may run code and change notebooks with a person's own credential,
        such as the server's token. False: they need an agent token; users in JupyterLab may still
        do everything.""",
    )
    max_token_lifetime = Float(
        2_592_000,
        min=60,
        max=2_592_000,
        config=True,
        help="The longest lifetime of an agent token, in seconds.",
    )

    decision_passphrase_hash = Unicode(
        config=True,
        help="""Hash of a passphrase that users type before they decide: approve or reject code,
        accept outputs, change the policy, create a token. This line asks for it and prints its
        hash: `python -c "from jupyter_server.auth import passwd; print(passwd())"`. Empty: no
        passphrase is needed. Code in a kernel can read this hash, so choose a passphrase that
        cannot be guessed: five random words or more.""",
    )

    @validate("decision_passphrase_hash")
    def _check_passphrase_hash(self, proposal: Bunch) -> str:
        if proposal.value and not is_slow_hash(proposal.value):
            raise TraitError(
                "decision_passphrase_hash: this is not the hash of a passphrase. The setting's "
                "help says how to make one; it begins with 'argon2:$argon2id$'."
            )
        return str(proposal.value)

    approval = Dict(
        config=True,
        help="""Which agent code needs a user's approval before it runs, for each kind of target
        (`scratch`, `notebook`, `kernel`): none (`none`), the first execution (`first`: once for
        each agent, until the kernel restarts), or every execution (`always`). Defaults: `none` for
        `scratch`, `first` for the others. `edits`: the user keeps or rejects each edit of a
        notebook by an agent with a token (`propose`, the default), or they are made at once
        (`apply`). Users may change all of it in JupyterLab.""",
    )
    forced_approval = Dict(
        config=True,
        help="""Like `approval`, but overrides it, and nobody can change it in JupyterLab. What it
        says of `scratch` holds for isolated kernels too. Default: nothing is forced.""",
    )
    approval_timeout = Float(
        3600,
        min=0.1,
        config=True,
        help="""Seconds after which an execution that waits for approval is rejected.""",
    )

    @validate("approval", "forced_approval")
    def _check_approval(self, proposal: Bunch) -> Modes:
        return checked_modes(proposal.trait.name, proposal.value)

    record_people = Enum(
        ("off", "source", "outputs"),
        "off",
        config=True,
        help="""How much is recorded of the code that users run in a kernel while an agent session
        is attached to it: nothing (`off`), the source (`source`), or the source and its outputs
        (`outputs`). The record holds only what the kernel reports, so it may be incomplete.""",
    )

    def kept_of_people(self) -> PersonRecording:
        """Return how much to record of the code that users run."""
        return PersonRecording(
            source=self.record_people != "off",
            outputs_bytes=self.max_output_bytes if self.record_people == "outputs" else None,
        )

    def settings_of_sessions(self) -> Settings:
        """Return the settings of sessions and executions."""
        return Settings(
            bounds=SessionLimits(
                timeout=min(self.default_timeout, self.max_timeout or self.default_timeout),
                queue_timeout=self.queue_timeout or None,
                max_output_bytes=self.max_output_bytes,
                max_text_bytes=self.max_text_bytes,
                max_queued=self.max_queued,
                interrupt_grace=self.interrupt_grace,
                restart_if_interrupt_ignored=self.restart_if_interrupt_ignored,
                idle_timeout=self.kernel_idle_timeout,
            ),
            max_timeout=self.max_timeout,
            max_sessions=self.max_sessions,
            session_idle_timeout=self.session_idle_timeout,
            allowed_env=frozenset(self.allowed_env),
            record_people=cast(RecordPeople, self.record_people),
            default_wait=self.default_wait,
            max_wait=self.max_wait,
            max_held=self.max_held_answers,
        )
