"""What ran in a user's kernel while agents used it, and whose outputs are out of date since.

It is in memory only: of each run its number, a hash of its source and names of variables. Code that
ran before an agent's session was attached to the kernel, or silently, is not seen.

Which global names a source reads and changes is told from the source (`names_of`), and by the
kernel. What is certain happens whenever the source runs to its end. What the bodies of functions
and classes read is told apart. What they change is not told, nor what code changes by other names
for the same object.
"""

from __future__ import annotations

import ast
import re
import threading
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from typing import Any, Final

from ..models import Changes, KernelRun, NotebookCell, Staleness
from ..types import Digest, ExecutionId

MOST_CHARACTERS: Final = 20_000
"""Longer sources are not read."""
_OPAQUE: Final = ("exec", "eval", "globals", "locals", "vars", "get_ipython")
_CHANGING: Final = (
    *("add", "append", "clear", "discard", "extend", "fill", "insert", "pop", "popitem", "remove"),
    *("reverse", "setdefault", "sort", "update"),
)
"""Methods that change what they are called on, by their usual names."""
_HARMLESS: Final = (
    *("%autoreload", "%cd", "%conda", "%config", "%load_ext", "%ls", "%matplotlib", "%pip", "%pwd"),
    *("%%bash", "%%html", "%%javascript", "%%latex", "%%markdown", "%%sh", "%%writefile"),
)
"""Magics that change no name."""
_KINDS: Final = {
    "part": ("Attribute", "Subscript"),
    "assignment": ("Assign", "AugAssign", "AnnAssign", "NamedExpr"),
    "branches": (
        "If",
        "IfExp",
        "While",
        "For",
        "AsyncFor",
        "Try",
        "TryStar",
        "Match",
        "BoolOp",
        "Assert",
    ),
    "inner": ("ListComp", "SetComp", "DictComp", "GeneratorExp", "Lambda"),
    "definition": ("FunctionDef", "AsyncFunctionDef", "ClassDef"),
    "import": ("Import", "ImportFrom"),
    "with": ("With", "AsyncWith"),
}
_KIND: Final = {name: kind for kind, names in _KINDS.items() for name in names}
"""How the nodes of a syntax tree are visited, by the names of their types."""
_MAGIC: Final = re.compile(r"^([ \t]*)([%!]\S*).*$", re.MULTILINE)


@dataclass(kw_only=True, slots=True)
class Names:
    """What a source reads and changes."""

    reads: set[str] = field(default_factory=set)
    """Names that it reads for certain, before it changes them itself."""
    may_read: set[str] = field(default_factory=set)
    binds: dict[str, str | None] = field(default_factory=dict)
    """Names that it binds or deletes for certain; for an import, what it imports."""
    may_change: set[str] = field(default_factory=set)
    later: set[str] = field(default_factory=set)
    """Names that may be read when its functions and classes are used."""
    unknown: str | None = None
    """What in it may change any other name; None if nothing does."""


def names_of(source: str) -> Names:
    """Return which names a source of an IPython cell reads and changes."""
    reader, magics = _Reader(), [each[2] for each in _MAGIC.finditer(source)]
    if source.split(maxsplit=1)[:1] in (["%%time"], ["%%capture"]):
        source = source.partition("\n")[2]
    if len(source) > MOST_CHARACTERS:
        return Names(unknown="long code")
    try:
        try:
            tree = ast.parse(source)
        except SyntaxError:
            is_whole = source.startswith("%%")
            tree = ast.parse("" if is_whole else _MAGIC.sub(r"\1pass", source))
            opaque = (each for each in magics if each[0] == "%" and each not in _HARMLESS)
            reader.names.unknown = next(opaque, None)
        reader.visit(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Names(unknown="code that could not be read")
    return reader.names


class _Reader(ast.NodeVisitor):
    """Visits what runs, in the order in which it does."""

    def __init__(self) -> None:
        self.names = Names()
        self._is_certain = True
        self._local: frozenset[str] = frozenset()

    def visit(self, node: ast.AST) -> None:
        name = type(node).__name__
        getattr(self, f"visit_{_KIND.get(name, name)}", self.generic_visit)(node)

    def _perhaps(self, nodes: Iterable[ast.AST | None], local: Iterable[str] = ()) -> None:
        before = self._is_certain, self._local
        self._is_certain, self._local = False, self._local.union(local)
        for node in filter(None, nodes):
            self.visit(node)
        self._is_certain, self._local = before

    def _change(self, node: ast.AST) -> None:
        """Note that the value of the name at the root of an expression may change."""
        while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
            node = node.func if isinstance(node, ast.Call) else node.value
        if isinstance(node, ast.Name) and node.id not in self._local:
            self.names.may_change.add(node.id)

    def _bind(self, name: str, imported: str | None = None) -> None:
        if self._is_certain:
            self.names.binds[name] = imported
        elif imported is None and name not in self._local:
            self.names.may_change.add(name)

    def visit_Name(self, node: ast.Name, is_read: bool = False) -> None:
        names = self.names
        if not is_read and not isinstance(node.ctx, ast.Load):
            self._bind(node.id)
        elif node.id not in self._local and node.id not in names.binds:
            names.unknown = node.id if node.id in _OPAQUE else names.unknown
            is_sure = self._is_certain and node.id not in names.may_change
            (names.reads if is_sure else names.may_read).add(node.id)

    def visit_part(self, node: ast.Attribute | ast.Subscript) -> None:
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            self._change(node)

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        is_changing = isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGING
        if is_changing or any(each.arg == "inplace" for each in node.keywords):
            self._change(node.func)

    def visit_assignment(self, node: Any) -> None:
        if node.value is None:
            return
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            self.visit_Name(node.target, is_read=True)
        for each in (node.value, *getattr(node, "targets", ()), getattr(node, "target", None)):
            if each is not None:
                self.visit(each)

    def visit_branches(self, node: Any) -> None:
        fields = ("test", "iter", "subject")
        first = next((getattr(node, each) for each in fields if hasattr(node, each)), None)
        if first is not None:
            self.visit(first)
        self._perhaps(each for each in ast.iter_child_nodes(node) if each is not first)

    def visit_Compare(self, node: ast.Compare) -> None:
        self.visit(node.left)
        self.visit(node.comparators[0])
        self._perhaps(node.comparators[1:])

    def visit_with(self, node: ast.With | ast.AsyncWith) -> None:
        for each in node.items:
            self.visit(each)
        self._perhaps(node.body)  # it may suppress an error

    def visit_inner(self, node: Any) -> None:
        """Visit an expression with names of its own."""
        generators = getattr(node, "generators", ())
        if generators:
            self.visit(generators[0].iter)
        self._perhaps(ast.iter_child_nodes(node), _stored(node))

    def visit_definition(self, node: Any) -> None:
        arguments = [] if isinstance(node, ast.ClassDef) else [node.args]
        for each in (*node.decorator_list, *getattr(node, "bases", ()), *arguments):
            self.visit(each)
        self._bind(node.name)
        loaded = (each.id for each in ast.walk(node) if isinstance(each, ast.Name))
        self.names.later.update(set(loaded).difference(_stored(node)))

    def visit_import(self, node: ast.Import | ast.ImportFrom) -> None:
        for each in node.names:
            if each.name == "*":
                self.names.unknown = "import *"
                continue
            name = each.asname or each.name.partition(".")[0]
            whole = each.name if each.asname else name
            self._bind(name, f"{getattr(node, 'module', '')} {whole}")


def _stored(node: ast.AST) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.arg):
            yield each.arg
        elif isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load):
            yield each.id


MOST_RUNS: Final = 300
"""How many runs are kept, the newest."""
MOST_NAMES: Final = 5_000
MOST_TOLD: Final = 3


@dataclass(kw_only=True, slots=True, eq=False)
class Run:
    """One run of a source."""

    msg_id: str
    """The id of its `execute_request`; an agent's execution has the same."""
    count: int
    digest: Digest
    names: Names
    is_over: bool = False
    failed: bool = False

    @property
    def execution_id(self) -> ExecutionId | None:
        """The agent's execution; None if it is a user's."""
        return ExecutionId(self.msg_id) if self.msg_id.startswith("x_") else None


class Runs:
    """The runs in one life of a kernel; from any thread. The cost of one does not grow with them.

    For each name, it keeps the number of the last run that changed it, and of the last that may
    have.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: dict[int, Run] = {}
        self._forget()

    def _forget(self) -> None:
        self._changed: dict[str, int] = {}
        self._may_have_changed: dict[str, int] = {}
        self._imported: dict[str, str | None] = {}
        """What each import of a name was of; None if something else bound it since."""
        self._opaque: Run | None = None

    def begin(self, msg_id: str, source: str, count: int) -> None:
        """Note that a kernel begins with a source."""
        digest = Digest(sha256(source.encode("utf-8", "surrogatepass")).hexdigest())
        run = Run(msg_id=msg_id, count=count, digest=digest, names=names_of(source))
        with self._lock:
            if self._runs and count < next(reversed(self._runs)):
                self._clear()  # the count began again: nothing from before is there
            self._runs.pop(count, None)  # what is not kept in its history does not count
            self._runs[count] = run
            if len(self._runs) > MOST_RUNS:
                del self._runs[next(iter(self._runs))]

    def end(
        self, msg_id: str, changes: Changes | None = None, *, failed: bool = False, is_over: bool
    ) -> None:
        """Note that a run has failed or ended, and what it changed, if that is known."""
        with self._lock:
            last = islice(reversed(self._runs.values()), 10)  # a user's may follow at once
            run = next((each for each in last if each.msg_id == msg_id), None)
            if run is None or run.is_over:
                return
            run.failed, run.is_over = run.failed or failed, is_over
            if is_over and run.failed:
                run.names.may_read |= run.names.reads
                run.names.may_change |= run.names.binds.keys()
                run.names.reads, run.names.binds = set(), {}
            elif is_over and changes is not None:
                _know(run.names, changes)
            if is_over:
                self._apply(run)

    def _apply(self, run: Run) -> None:
        for name, imported in run.names.binds.items():
            if imported is None or self._imported.get(name, imported) != imported:
                _put(self._changed, name, run.count)
            self._imported[name] = imported
        for name in run.names.may_change:
            _put(self._may_have_changed, name, run.count)
        if run.names.unknown is not None:
            self._opaque = run

    def miss(self) -> None:
        """Note that messages of the kernel were lost, so that nothing is known any more."""
        with self._lock:
            self._clear()

    def _clear(self) -> None:
        self._runs.clear()
        self._forget()

    def take_back(self, msg_ids: Collection[str]) -> None:
        """Note that the kernel is as it was before some runs, and those that followed them."""
        with self._lock:
            taken = (count for count, run in self._runs.items() if run.msg_id in msg_ids)
            first = min(taken, default=None)
            self._forget()
            for count, run in list(self._runs.items()):
                if first is not None and count >= first:
                    del self._runs[count]
                elif run.is_over:
                    self._apply(run)

    def listed(self) -> list[KernelRun]:
        """Return all runs that have ended, with what makes the outputs of each out of date."""
        with self._lock:
            return [
                KernelRun(
                    execution_count=run.count,
                    source_sha256=run.digest,
                    execution_id=run.execution_id,
                    stale=self._stale(run),
                )
                for run in self._runs.values()
                if run.is_over
            ]

    def stale(self, cell: NotebookCell) -> Staleness | None:
        """Return why the outputs of a cell are out of date; None if nothing is known."""
        with self._lock:
            run = self._runs.get(cell.execution_count or 0)
            if run is None or not run.is_over:
                return None
            if run.digest == cell.source_sha256:
                return self._stale(run)
            if run.execution_id != cell.execution_id:
                return None
            # A user's cell may have its count from an earlier kernel.
            is_known = run.execution_id is not None
            return Staleness(certain=is_known, cause="edited", names=[], execution_count=None)

    def _stale(self, run: Run) -> Staleness | None:
        every = run.names.reads | run.names.may_read
        for certain, names, by in (
            (True, run.names.reads, self._changed),
            (False, every, self._changed),
            (False, every, self._may_have_changed),
        ):
            told = sorted(name for name in names if by.get(name, 0) > run.count)[:MOST_TOLD]
            if told:
                last = max(by[name] for name in told)
                return Staleness(certain=certain, cause="changed", names=told, execution_count=last)
        opaque = self._opaque
        if not every or opaque is None or opaque.count <= run.count:
            return None
        return Staleness(
            certain=False,
            cause="unknown",
            names=[opaque.names.unknown or ""],
            execution_count=opaque.count,
        )


def _know(names: Names, changes: Changes) -> None:
    """Put what the kernel told that a run changed in the place of what its source tells."""
    changed = {each.name for each in changes.variables}
    kept = {name: names.binds.get(name) for name in names.binds if name.startswith("_")}
    not_told = (names.may_change | names.binds.keys()) - changed - kept.keys()
    names.may_change = not_told if changes.not_compared or changes.more_variables else set()
    names.unknown = "many changes" if changes.more_variables else None
    names.binds = kept | {name: names.binds.get(name) for name in changed}


def _put(by: dict[str, int], name: str, count: int) -> None:
    by[name] = max(count, by.pop(name, 0))
    if len(by) > MOST_NAMES:
        del by[next(iter(by))]
