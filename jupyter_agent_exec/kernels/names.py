"""Which global names a source reads and changes, as far as it tells. Pure.

What is certain happens whenever the source runs to its end. The bodies of functions and classes are
not read, nor what code changes by other names for the same object.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

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
