"""The configuration of the extension."""

from __future__ import annotations

from pathlib import Path
from typing import cast

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

from .approvals.manager import Approvals
from .approvals.policy import checked_modes
from .auth.unlocks import is_slow_hash
from .executions.limits import SessionLimits, Settings
from .files.manager import SessionFiles
from .kernels.isolation.isolation import IsolationTraits
from .kernels.person_executions import PersonRecording
from .mcp.endpoint import McpTraits
from .notebooks.manager import NotebookManager
from .sessions.manager import AgentSessions
from .types import ApprovalMode, RecordChanges, RecordPeople, TargetKind


class AgentExecTraits(IsolationTraits, McpTraits):
    """All traits of the extension."""

    history_dir = Unicode(
        config=True,
        help="""Folder of the history: journals, ledger, blobs and index. It should be outside of
        what the server serves. Default: `agent_exec` in Jupyter's data directory.""",
    )

    @default("history_dir")
    def _default_history_dir(self) -> str:
        return str(Path(jupyter_data_dir()) / "agent_exec")

    session_manager_class = Type(
        AgentSessions,
        config=True,
        help="Class that manages agent sessions and their executions.",
    )
    approval_manager_class = Type(
        Approvals, config=True, help="Class that manages what people approve."
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
        help="Seconds an execution may run when nobody says otherwise.",
    )
    max_timeout = Float(
        0, min=0, config=True, help="The longest timeout that may be asked for, in seconds; 0: any."
    )
    queue_timeout = Float(
        0,
        min=0,
        config=True,
        help="Seconds an execution may wait for its turn when nobody says otherwise; 0: any time.",
    )
    interrupt_grace = Float(
        5,
        min=0.1,
        config=True,
        help="Seconds after an interrupt before code that goes on is said to ignore it.",
    )
    restart_if_interrupt_ignored = Bool(
        False,
        config=True,
        help="""Whether a scratch kernel whose code ignores an interrupt is replaced when nobody
        says otherwise. Its variables are lost then; without, the session waits for the code.""",
    )
    max_output_bytes = Int(
        10_000_000,
        min=1000,
        config=True,
        help="""Bytes of output kept with a cell, at the most: half from the start, half from the
        end.""",
    )
    max_text_bytes = Int(
        100_000_000,
        min=0,
        config=True,
        help="Bytes of text kept beside the cell when its output is over max_output_bytes.",
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
        help="""How many agent sessions may be open at once; half of them with one agent token.""",
    )
    max_queued = Int(
        100, min=1, config=True, help="How many executions may wait in one session at once."
    )
    default_wait = Float(
        30,
        min=0,
        config=True,
        help="Seconds to hold an answer for an execution to finish when nobody says otherwise.",
    )
    max_wait = Float(
        60,
        min=0,
        config=True,
        help="The longest time to hold an answer, in seconds; below the timeout of any proxy.",
    )
    max_held_answers = Int(
        400,
        min=1,
        config=True,
        help="""How many answers may be held, and streams be open, at once with all agent tokens;
        half of them with one. Requests with a person's own credential are counted apart, up to as
        many.""",
    )
    send_timeout = Float(
        60,
        min=0.1,
        config=True,
        help="""Seconds within which a client has to take the next piece of a long answer, at most
        about 130 kB; then its connection is closed.""",
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
        help="""How many scratch kernels to keep warm after the first was used, so that the next
        session like it opens at once; 0: none.""",
    )
    kernel_start_timeout = Float(
        60, min=1, config=True, help="Seconds within which a scratch kernel must answer."
    )
    kernel_idle_timeout = Float(
        3600,
        min=0,
        config=True,
        help="""Seconds after which a scratch kernel that does nothing is shut down, and a warm one
        that nobody takes; 0: never. The session stays open and gets a fresh kernel when needed.""",
    )
    session_idle_timeout = Float(
        14_400,
        min=0,
        config=True,
        help="""Seconds after which a session is closed that nobody has used, that has no execution
        that waits or runs, and no scratch kernel; 0: never. The kernel of a notebook stays. What
        the session ran can still be read.""",
    )
    aca_idle_timeout = Float(
        3600,
        min=0,
        config=True,
        help="""Seconds after which a session that was opened by the protocol of Azure's dynamic
        sessions is closed, with its folder, if nobody used it; 0: never.""",
    )

    allow_full_access = Bool(
        True,
        config=True,
        help="""Whether a program may run code and change notebooks with a person's own credential,
        such as the server's token. False: only with an agent token; people in JupyterLab may do
        everything.""",
    )
    allow_completion = Bool(
        True,
        config=True,
        help="""Whether agents get completion and documentation from kernels, which may run code for
        them (an import, a property). Each counts and is recorded as code is. False: documentation
        is refused, and completion tells what is known without running code.""",
    )
    max_token_lifetime = Float(
        2_592_000,
        min=60,
        max=2_592_000,
        config=True,
        help="The longest time for which an agent token may be minted, in seconds.",
    )

    decision_passphrase_hash = Unicode(
        config=True,
        help="""Hash of a passphrase that people have to type before they decide: approve or reject
        code, accept outputs, change the policy, mint a token. Make it with
        `jupyter agent-exec passphrase`. Empty: nobody is asked. Code in a kernel can read this
        hash, so choose a passphrase that cannot be guessed.""",
    )

    @validate("decision_passphrase_hash")
    def _check_passphrase_hash(self, proposal: Bunch) -> str:
        if proposal.value and not is_slow_hash(proposal.value):
            raise TraitError(
                "decision_passphrase_hash: this is no hash of a passphrase. Make one with "
                "'jupyter agent-exec passphrase'; it begins with 'argon2:$argon2id$'."
            )
        return str(proposal.value)

    approval = Dict(
        config=True,
        help="""What of an agent session a person has to approve before it runs, by the kind of its
        target (`scratch`, `notebook`, `kernel`): nothing (`none`), its first execution in each life
        of its kernel (`first`), or every one (`always`). What is not said is `none` for `scratch`
        and `first` for the others. People may change it in JupyterLab.""",
    )
    forced_approval = Dict(
        config=True,
        help="""As `approval`; what stands here counts instead, and nobody can change it in
        JupyterLab. Default: nothing.""",
    )
    approval_timeout = Float(
        3600,
        min=0.1,
        config=True,
        help="""Seconds for which an execution asks for approval; it is rejected if nobody decides
        until then.""",
    )

    @validate("approval", "forced_approval")
    def _check_approval(self, proposal: Bunch) -> dict[TargetKind, ApprovalMode]:
        return checked_modes(proposal.trait.name, proposal.value)

    record_people = Enum(
        ("off", "source", "outputs"),
        "off",
        config=True,
        help="""What is recorded of what people run in the kernels that agents are attached to,
        and programs in those that they start over Jupyter's own routes: nothing (`off`), what they
        ran (`source`), or also what came of it (`outputs`). As far as the kernel tells it, so it
        may not be all.""",
    )

    record_changes = Enum(
        ("off", "scratch", "all"),
        "scratch",
        config=True,
        help="""In which kernels it is recorded what an execution changed, its variables and the
        files in its folder: in none (`off`), in scratch kernels (`scratch`), or also in those
        that people use (`all`), where the kernel is asked before and after.""",
    )

    def kept_of_people(self) -> PersonRecording:
        """Return what was decided about what people run."""
        return PersonRecording(
            source=self.record_people != "off",
            outputs_bytes=self.max_output_bytes if self.record_people == "outputs" else None,
        )

    def settings_of_sessions(self) -> Settings:
        """Return what was decided about sessions and what runs in them."""
        return Settings(
            bounds=SessionLimits(
                timeout=self.default_timeout,
                queue_timeout=self.queue_timeout or None,
                max_output_bytes=self.max_output_bytes,
                max_text_bytes=self.max_text_bytes,
                max_queued=self.max_queued,
                interrupt_grace=self.interrupt_grace,
                restart_if_interrupt_ignored=self.restart_if_interrupt_ignored,
                idle_timeout=self.kernel_idle_timeout,
                record_changes=cast(RecordChanges, self.record_changes),
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
