"""Decides which code needs approval in the mode `rules`. Pure: a source in, reasons out.

It reads the source's syntax tree, knows what common functions and methods do, and follows what each
name is bound to. Whatever it does not know needs approval. **It is a convenience, not a guard**: it
cannot see what a name was bound to elsewhere, what a class of somebody else does, or what is in the
files that code reads. Code that it lets through may still do harm.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial, reduce
from itertools import zip_longest
from typing import Final

from ..models import ApprovalReason
from ..types import RuleKind
from . import known_code as known
from .known_code import Harm, harm_of, method_harm
from .scope import DEEP, FRESH, LITERAL, NOT, OUTER, SHALLOW, Scope, Value

MOST_CHARACTERS: Final = 40_000
"""A longer source is not read; it needs approval."""

MOST_OF_A_COMMAND: Final = 1_000
"""Characters of an IPython command to look at."""

MOST_REASONS: Final = 20
"""How many reasons are given for one source."""

_CANNOT_PARSE: Final = (RecursionError, SystemError)
"""CPython 3.11 raises SystemError if another thread parses at the same moment."""

SHOWN: Final = 60
"""Maximum characters of a name in a reason."""

DEFAULT_ALLOWED: Final[tuple[RuleKind, ...]] = ("read", "plot")
"""The kinds of code that need no approval by default."""

_BUILTINS: Final = frozenset(dir(builtins)) | {"display", "get_ipython", "exit", "quit"}
_ALIASES: Final = known.IMPORTED_AS
_IN_SCOPE: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)

_ADDRESS: Final = re.compile(r"\s*[A-Za-z][\w+.-]+:|.*://|\s*//|\s*\\\\", re.DOTALL)
_NO_SCHEME: Final = re.compile(r"[\w+.-]*[^\w+.:-]")
"""The beginning of a text that cannot become an address, whatever follows it."""
_HIDDEN: Final = re.compile(r"(^|/)\.[^./]|^~|^/(etc|proc|root|sys|dev|run|var/run)(/|$)")

_MAGIC: Final = re.compile(
    r"(?:[\w.,\[\]()* ]+=\s*)?(?:!|%|\?|/[A-Za-z]|,\s*[A-Za-z]|;\s*[A-Za-z])"
    r"|[\w.*\[\]]+\?{1,2}$"
)
"""A line of IPython's own syntax, without the spaces around it."""
_INSTALLS: Final = re.compile(
    r"\b(pip3?|conda|mamba|micromamba|uv|poetry|apt|apt-get|npm|brew)\b.*"
    r"\b(install|add|sync|update|upgrade|uninstall|remove)\b"
)


def reasons_to_ask(
    source: str,
    allowed: Iterable[RuleKind] = DEFAULT_ALLOWED,
    *,
    outside: Mapping[str, str] | None = None,
    own: Set[str] = frozenset(),
) -> list[ApprovalReason]:
    """Return why a source needs approval, in the order of its lines; empty if it needs none.

    Parameters
    ----------
    allowed
        The kinds of code that need no approval.
    outside
        The names that exist in the kernel, with what they are, as `described` in
        `kernels/in_kernel/comm_target.py` tells it; None if the kernel did not tell.
    own
        Those names that earlier code of the agent made.
    """
    finder = _Finder(frozenset(allowed), outside, own)
    try:
        finder.read(source)
    except _CANNOT_PARSE:
        finder.found = {}
        finder.add(1, ("unknown", "begins code that is nested too deeply for the rules"))
    return sorted(finder.found.values(), key=lambda reason: reason.line)[:MOST_REASONS]


def names_in(source: str) -> list[str]:
    """Return the names that a source uses or makes; empty if it cannot be read."""
    try:
        tree = _parsed(source)[0]
    except _CANNOT_PARSE:
        return []
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
    return sorted(found)


def names_made_by(source: str) -> set[str]:
    """Return the names that a source binds outside of functions and classes."""
    try:
        tree = _parsed(source)[0]
    except _CANNOT_PARSE:
        return set()
    found: set[str] = set()
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        if not isinstance(node, _IN_SCOPE):
            waiting.extend(ast.iter_child_nodes(node))
    return found


def _parsed(source: str) -> tuple[ast.Module, list[tuple[int, str]], int | None]:
    """Return a source's tree, its lines in IPython's own syntax, and the line of an error."""
    if source.lstrip().startswith("%%"):
        return ast.Module([], []), [(1 + source[: source.find("%%")].count("\n"), source)], None
    try:
        return ast.parse(source), [], None
    except (SyntaxError, ValueError, MemoryError):
        lines, magics = source.split("\n"), []
    is_one_line = len(source.strip().splitlines()) == 1
    for number, line in enumerate(lines, 1):
        if _MAGIC.match(line.strip()) or (is_one_line and _is_command(line)):
            magics.append((number, line))
            lines[number - 1] = f"{line[: len(line) - len(line.lstrip())]}pass"
    try:
        return ast.parse("\n".join(lines)), magics, None
    except (SyntaxError, ValueError, MemoryError) as error:
        return ast.Module([], []), magics, getattr(error, "lineno", None) or 1


def _is_command(line: str) -> bool:
    """Return whether IPython takes a line that stands alone for a command, such as `rm -f`."""
    word = line.split(maxsplit=1)[:1]
    return bool(word) and word[0] in known.LINE_COMMANDS


class _Finder:
    """Finds the reasons for which one source needs approval."""

    def __init__(
        self, allowed: Set[RuleKind], outside: Mapping[str, str] | None, own: Set[str]
    ) -> None:
        self._allowed: Set[str] = allowed
        self._outside = outside
        self._own = own
        self._module = self._scope = Scope()
        self._later: deque[Callable[[], None]] = deque()
        self._loops = 0
        self._selves: list[str] = []
        self._methods: set[str] = set()
        self._read: set[int] = set()
        self._set_later: set[str] = set()
        self._outer_attributes: set[str] = set()
        self._known: dict[int, Value] = {}
        self.found: dict[tuple[int, str], ApprovalReason] = {}

    def add(self, line: int, harm: Harm, name: str = "") -> None:
        """Add a reason, unless its kind is allowed."""
        kind, text = harm
        if not text or kind in self._allowed:
            return
        shown = name if len(name) <= SHOWN else f"{name[: SHOWN - 1]}…"
        text = f"{text}: {shown}" if shown else text
        self.found.setdefault((line, text), ApprovalReason(line=line, kind=kind, text=text))

    def _unknown(self, node: ast.AST, deed: str, name: str) -> None:
        shown = name if len(name) <= SHOWN else f"{name[: SHOWN - 1]}…"
        self.add(_line(node), ("unknown", f"{deed} `{shown}`, which the rules do not know"))

    def read(self, source: str) -> None:
        """Read a whole source."""
        if len(source) > MOST_CHARACTERS:
            self.add(1, ("unknown", "begins code that is too long for the rules"))
            return
        tree, magics, error_line = _parsed(source)
        for line, text in magics:
            is_install = _INSTALLS.search(text[:MOST_OF_A_COMMAND])
            harm = known.INSTALL if is_install else known.COMMAND
            self.add(line, harm, " ".join(text.split()[:1]))
        if error_line is not None:
            self.add(error_line, ("unknown", "is no Python that the rules can read"))
        self._check_line_command(source, tree)
        if "global" in source or "nonlocal" in source:
            for node in ast.walk(tree):
                if isinstance(node, ast.Global | ast.Nonlocal):
                    self._set_later.update(node.names)
        self._block(tree.body)
        self._module.is_done = True
        while self._later:
            self._later.popleft()()

    def _check_line_command(self, source: str, tree: ast.Module) -> None:
        """IPython takes a cell of one line such as `rm -f` for a command."""
        if len(source.strip().splitlines()) != 1 or not tree.body:
            return
        word = source.split(maxsplit=1)[0]
        is_name = self._outside is not None and word in self._outside
        if _is_command(source) and not is_name and isinstance(tree.body[0], ast.Expr):
            self.add(tree.body[0].lineno, known.COMMAND, word)

    # -- statements --------------------------------------------------------------------------------

    def _block(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Expr() | ast.Return():
                self._optional(node.value)
            case ast.Assign():
                self._assign(node)
            case ast.AnnAssign():
                self._value(node.annotation)
                value = self._optional(node.value)
                if node.value is not None:
                    self._bind(node.target, value, node.value)
            case ast.AugAssign():
                self._augment(node)
            case ast.Import() | ast.ImportFrom():
                self._import(node)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._function(node)
            case ast.ClassDef():
                self._class(node)
            case ast.Delete():
                for target in node.targets:
                    self._delete(target)
            case ast.Global() | ast.Nonlocal():
                self._scope.shared.update(node.names)
            case ast.Pass() | ast.Break() | ast.Continue():
                pass
            case ast.Raise():
                self._optional(node.exc)
                self._optional(node.cause)
            case ast.Assert():
                self._value(node.test)
                self._optional(node.msg)
            case _:
                self._compound(node)

    def _compound(self, node: ast.stmt) -> None:
        match node:
            case ast.If():
                self._value(node.test)
                self._branches(partial(self._block, node.body), partial(self._block, node.orelse))
            case ast.For() | ast.AsyncFor():
                element = self._iterated(node.iter)
                self._loop(lambda: self._bind(node.target, element), node.body)
                self._block(node.orelse)
            case ast.While():
                self._loop(lambda: self._value(node.test), node.body)
                self._block(node.orelse)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    value = self._context(item.context_expr)
                    if item.optional_vars is not None:
                        self._bind(item.optional_vars, value)
                self._block(node.body)
            case ast.Match():
                subject = self._value(node.subject).part
                self._branches(*(partial(self._case, case, subject) for case in node.cases))
            case ast.Try():
                self._try(node)
            case _ if type(node).__name__ == "TryStar":
                self._try(node)
            case _:
                self.add(_line(node), ("unknown", "is of a form that the rules do not know"))

    def _try(self, node: ast.stmt) -> None:
        body, handlers = getattr(node, "body", ()), getattr(node, "handlers", ())
        self._branches(partial(self._block, body), lambda: None)
        branches = [partial(self._handler, each) for each in handlers]
        self._branches(partial(self._block, getattr(node, "orelse", ())), *branches)
        self._block(getattr(node, "finalbody", ()))

    def _handler(self, node: ast.ExceptHandler) -> None:
        self._optional(node.type)
        if node.name is not None:
            self._bind_name(node.name, FRESH, node)
        self._block(node.body)

    def _case(self, case: ast.match_case, subject: Value) -> None:
        for node in ast.walk(case.pattern):
            name = getattr(node, "name", None) or getattr(node, "rest", None)
            if isinstance(name, str):
                self._bind_name(name, subject, node)
            if isinstance(node, ast.MatchValue):
                self._value(node.value)
            if isinstance(node, ast.MatchClass):
                self._value(node.cls)
        self._optional(case.guard)
        self._block(case.body)

    def _iterated(self, node: ast.expr) -> Value:
        value = self._value(node)
        if value.is_strange and isinstance(node, ast.Name) and node.id not in self._set_later:
            self._unknown(node, "iterates over", node.id)
        return value.part

    def _branches(self, *branches: Callable[[], object]) -> None:
        scope, before, after = self._scope, dict(self._scope.names), []
        for branch in branches:
            scope.names = dict(before)
            branch()
            after.append(scope.names)
        scope.merge(after)

    def _loop(self, head: Callable[[], object], body: Sequence[ast.stmt]) -> None:
        """Read a loop twice: its second round may find other values. Loops in it are read once."""
        scope = self._scope
        self._loops += 1
        for _ in range(2 if self._loops == 1 else 1):
            before = dict(scope.names)
            head()
            self._block(body)
            scope.merge((before, scope.names))
        self._loops -= 1

    def _context(self, node: ast.expr) -> Value:
        value = self._value(node)
        if not (isinstance(node, ast.Call) or value.path or value.owned):
            self._unknown(node, "enters", _shown(node))
        return value

    def _assign(self, node: ast.Assign) -> None:
        is_alias = all(isinstance(each, ast.Name) for each in node.targets)
        value = self._module_or_value(node.value, is_alias and not self._scope.is_class)
        for target in node.targets:
            self._bind(target, value, node.value)

    def _module_or_value(self, node: ast.expr, may_be_module: bool) -> Value:
        """Read an expression; a module is followed where it only gets another name."""
        if may_be_module and isinstance(node, ast.Name | ast.Attribute):
            value = self._resolved(node)
            if value.path in known.MODULES:
                self._known[id(node)] = value
                return value
        return self._value(node)

    def _augment(self, node: ast.AugAssign) -> None:
        added = self._value(node.value)
        target = node.target
        if not isinstance(target, ast.Name):
            self._mutate(target.value, node)
            return
        value = self._name(target.id)
        if value.owned == NOT or value.path:
            self.add(_line(node), ("variables", f"changes `{target.id}`, which it did not make"))
        part = value.is_local and _is_separated(node.op, node.value)
        joined = Value(owned=min(value.owned, max(added.owned, SHALLOW)), is_local=part)
        self._bind_name(target.id, joined, node)

    def _delete(self, target: ast.expr) -> None:
        match target:
            case ast.Name():
                if self._scope.names.pop(target.id, None) is None and target.id not in self._own:
                    harm: Harm = ("variables", f"deletes `{target.id}`, which it did not make")
                    self.add(_line(target), harm)
            case ast.Tuple() | ast.List():
                for each in target.elts:
                    self._delete(each)
            case ast.Attribute() | ast.Subscript():
                self._mutate(target.value, target)

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            if isinstance(node, ast.Import):
                path = alias.name
                bound = path if alias.asname else path.partition(".")[0]
            elif alias.name == "*" or node.level or node.module is None:
                self._unknown(node, "imports", f"{node.module or '.'}.{alias.name}")
                continue
            else:
                path = bound = f"{node.module}.{alias.name}"
            harm = harm_of(path)
            if harm is None:
                self._unknown(node, "imports", path)
            elif harm[0] not in ("read", "plot"):
                self.add(_line(node), (harm[0], f"imports what {harm[1]}"), path)
            if self._scope.is_class:
                self._unknown(node, "imports into a class", path)
            name = alias.asname or bound.rpartition(".")[2]
            self._bind_name(name, Value(path=bound), node)

    # -- functions and classes ---------------------------------------------------------------------

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for decorator in node.decorator_list:
            self._decorator(decorator)
        self._optional(node.returns)
        in_class = self._scope.is_class
        if in_class:
            self._methods.add(node.name)
        is_static = any(_shown(each) == "staticmethod" for each in node.decorator_list)
        self._body(node.args, node.body, has_self=in_class and not is_static)
        self._bind_name(node.name, Value(is_function=True), node)

    def _body(
        self, args: ast.arguments, body: Sequence[ast.stmt] | ast.expr, *, has_self: bool = False
    ) -> Value:
        """Read a function's body when all else has been read: it may be called at any time."""
        for default in (*args.defaults, *args.kw_defaults):
            self._optional(default)
        positional = [*args.posonlyargs, *args.args]
        for arg in (*positional, *args.kwonlyargs, args.vararg, args.kwarg):
            if arg is not None:
                self._optional(arg.annotation)
        parent: Scope | None = self._scope
        while parent is not None and parent.is_class:
            parent = parent.parent
        scope = Scope(parent=parent)
        for arg in (*positional, *args.kwonlyargs):
            scope.bind(arg.arg, Value(is_outer=True))
        for arg in (args.vararg, args.kwarg):
            if arg is not None:
                scope.bind(arg.arg, Value(owned=SHALLOW))
        selves = [positional[0].arg] if has_self and positional else []
        for name in selves:
            scope.bind(name, Value(owned=DEEP, is_own_class=True))

        def read() -> None:
            self._scope, self._loops = scope, 0
            self._selves = selves
            if isinstance(body, ast.expr):
                self._value(body)
            else:
                self._block(body)
            scope.is_done = True

        if id(args) not in self._read:  # a loop is read twice
            self._read.add(id(args))
            self._later.append(read)
        return Value(is_function=True)

    def _decorator(self, node: ast.expr) -> None:
        func = node.func if isinstance(node, ast.Call) else node
        is_accessor = isinstance(func, ast.Attribute) and func.attr in ("setter", "deleter")
        if isinstance(func, ast.Attribute) and is_accessor and self._value(func.value).is_function:
            return
        value = self._value(node)
        target = self._resolved(func)
        if target.path not in known.DECORATORS and not target.is_function and not value.is_function:
            self._unknown(node, "decorates with", _shown(func))

    def _class(self, node: ast.ClassDef) -> None:
        for decorator in node.decorator_list:
            self._decorator(decorator)
        for base in node.bases:
            value = self._value(base)
            if not (value.path or value.is_function or isinstance(base, ast.Subscript)):
                self._unknown(base, "extends", _shown(base))
        for keyword in node.keywords:
            if not isinstance(keyword.value, ast.Constant):
                self.add(_line(node), known.INTERNALS, f"class {node.name}")
        outer = self._scope
        self._scope = Scope(parent=outer, is_class=True)
        self._block(node.body)
        self._scope.is_done = True
        self._scope = outer
        self._bind_name(node.name, Value(is_function=True, is_own_class=True), node)

    # -- names -------------------------------------------------------------------------------------

    def _bind(self, target: ast.expr, value: Value, source: ast.expr | None = None) -> None:
        match target:
            case ast.Name():
                self._bind_name(target.id, value, target, source)
            case ast.Tuple() | ast.List():
                parts: list[ast.expr] = []
                if isinstance(source, ast.Tuple | ast.List):
                    parts = source.elts
                if any(isinstance(each, ast.Starred) for each in (*parts, *target.elts)):
                    parts = []
                for each, part in zip_longest(target.elts, parts[: len(target.elts)]):
                    known_part = value.part if part is None else self._again(part)
                    self._bind(each, known_part, part)
            case ast.Starred():
                self._bind(target.value, value.at_most(SHALLOW))
            case ast.Attribute():
                self._mutate(target.value, target)
                self._attribute_name(target)
                self._put_in(target.value, value)
                if value.is_outer:
                    self._outer_attributes.add(target.attr)
            case ast.Subscript():
                self._value(target.slice)
                self._mutate(target.value, target)
                self._put_in(target.value, value)

    def _put_in(self, holder: ast.expr, value: Value) -> None:
        """Note what a holder contains now: a value that this source did not make, an address."""
        while isinstance(holder, ast.Attribute | ast.Subscript):
            holder = holder.value
        if isinstance(holder, ast.Name) and holder.id not in self._selves:
            before = self._scope.get(holder.id)
            if before is not None and (value.is_outer or not value.is_local):
                after = before.at_most(SHALLOW if value.is_outer else DEEP)
                self._scope.bind(holder.id, replace(after, is_local=False))

    def _again(self, node: ast.expr) -> Value:
        """Return the value of an expression that has been read already."""
        return self._known.get(id(node), OUTER)

    def _bind_name(
        self, name: str, value: Value, node: ast.AST, source: ast.expr | None = None
    ) -> None:
        scope = self._scope
        while scope.is_comprehension and scope.parent is not None:
            scope = scope.parent
        if name in scope.shared:
            scope = self._owner_of(name, scope)
        if scope is self._module:
            self._check_new(name, value, node)
            is_named = source is None or isinstance(source, ast.Name | ast.Attribute)
            is_data = value.owned or value.is_plain or value.is_function
            is_other = value.path is None and is_named and not is_data
            if (name in _BUILTINS and (is_other or value.path)) or (is_other and name in _ALIASES):
                harm: Harm = ("dynamic", f"rebinds `{name}`, on which the rules rely")
                self.add(_line(node), harm)
        scope.bind(name, value)

    def _check_new(self, name: str, value: Value, node: ast.AST) -> None:
        """Check that a name of the kernel is not a user's variable."""
        if name in self._module.every or name in self._own:
            return
        if self._outside is None:
            if value.path is None or name not in (value.path, *_usual_names(value.path)):
                text = f"sets `{name}`, which may be a variable of yours"
                self.add(_line(node), ("variables", text))
        elif name in self._outside:
            there = self._outside_value(name)
            if there.path is None or not value.path or _root(there.path) != _root(value.path):
                self.add(_line(node), ("variables", f"replaces your variable `{name}`"))

    def _owner_of(self, name: str, scope: Scope) -> Scope:
        found = scope.parent
        while found is not None:
            if name in found.every and not found.is_class:
                return found
            found = found.parent
        return self._module

    def _name(self, name: str) -> Value:
        value = self._found(name)
        if name in self._set_later:  # a function may set it at any time
            return Value(path="" if value.path else None, owned=value.owned, is_strange=True)
        return value

    def _found(self, name: str) -> Value:
        scope: Scope | None = self._scope
        is_inner = True
        while scope is not None:
            if is_inner or not scope.is_class:
                value = scope.get(name)
                if value is not None:
                    return value
            is_inner = False
            scope = scope.parent
        if self._outside is not None and name in self._outside:
            value = self._outside_value(name)
            is_own = name in self._own and value.path is None
            return FRESH if is_own and not value.is_strange else value
        if name in self._own:
            return FRESH
        if name in _ALIASES:
            return Value(path=_ALIASES[name])
        if name in _BUILTINS or (name.startswith("__") and name.strip("_")):
            return Value(path=f"builtins.{name}")
        return OUTER

    def _outside_value(self, name: str) -> Value:
        """Return what is known of a name in the kernel."""
        kind, _, path = (self._outside or {}).get(name, "").partition(" ")
        if kind in ("module", "function", "class"):
            return Value(path=_public(path))
        is_path = path.startswith("pathlib.")
        is_strange = bool(path) and not known.is_data_type(path)
        return Value(is_path=is_path, is_local=is_path, is_strange=is_strange, is_outer=True)

    # -- expressions -------------------------------------------------------------------------------

    def _optional(self, node: ast.expr | None) -> Value:
        return LITERAL if node is None else self._value(node)

    def _value(self, node: ast.expr) -> Value:
        """Read an expression, add its reasons, and return what is known of its value."""
        value = self._known[id(node)] = self._read_expression(node)
        return value

    def _read_expression(self, node: ast.expr) -> Value:
        match node:
            case ast.Constant():
                is_address = isinstance(node.value, str) and _ADDRESS.match(node.value)
                return Value(owned=DEEP, is_plain=True, is_local=not is_address)
            case ast.Name() | ast.Attribute():
                value = self._resolved(node)
                if value.path is not None:
                    self._use(value.path, node, called=False)
                if value.path in known.MODULES:
                    self._unknown(node, "passes on", value.path or "")
                return value
            case ast.Call():
                return self._call(node)
            case ast.Subscript():
                return self._subscript(node)
            case ast.Tuple() | ast.List() | ast.Set():
                return self._display(node.elts)
            case ast.Dict():
                for key in node.keys:
                    self._optional(key)
                return self._display(node.values)
            case ast.BinOp():
                left, right = self._value(node.left), self._value(node.right)
                return self._combined(node, left, right)
            case ast.BoolOp():
                values = [self._value(each) for each in node.values]
                return reduce(Value.joined, values)
            case ast.UnaryOp():
                return Value(owned=DEEP, is_plain=self._value(node.operand).is_plain)
            case ast.Compare():
                for each in (node.left, *node.comparators):
                    self._value(each)
                return FRESH
            case ast.IfExp():
                self._value(node.test)
                return self._value(node.body).joined(self._value(node.orelse))
            case ast.JoinedStr():
                return self._joined(node)
            case ast.Lambda():
                return self._body(node.args, node.body)
            case ast.NamedExpr():
                value = self._value(node.value)
                self._bind(node.target, value, node.value)
                return value
            case _:
                return self._rare(node)

    def _rare(self, node: ast.expr) -> Value:
        match node:
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
                return self._comprehension(node.generators, node.elt)
            case ast.DictComp():
                return self._comprehension(node.generators, node.key, node.value)
            case ast.FormattedValue():
                self._value(node.value)
                self._optional(node.format_spec)
                return FRESH
            case ast.Starred() | ast.Await() | ast.YieldFrom():
                return self._value(node.value)
            case ast.Yield():
                self._optional(node.value)
                return OUTER
            case ast.Slice():
                for each in (node.lower, node.upper, node.step):
                    self._optional(each)
                return FRESH
            case _:
                self.add(_line(node), ("unknown", "is of a form that the rules do not know"))
                return OUTER

    def _display(self, elements: Iterable[ast.expr]) -> Value:
        values = [self._value(each) for each in elements]
        return Value(
            owned=DEEP if all(each.owned == DEEP for each in values) else SHALLOW,
            is_plain=all(_is_safe_callback(each) for each in values),
            is_local=all(each.is_local for each in values),
            is_path=any(each.is_path for each in values),
        )

    def _combined(self, node: ast.BinOp, left: Value, right: Value) -> Value:
        both = min(left.owned, right.owned)
        is_number = left.is_plain and right.is_plain and not isinstance(node.op, ast.Add | ast.Mod)
        return Value(
            owned=max(SHALLOW, both),
            is_plain=is_number,
            is_local=left.is_path or (left.is_local and _is_separated(node.op, node.left)),
            is_path=left.is_path and isinstance(node.op, ast.Div),
        )

    def _joined(self, node: ast.JoinedStr) -> Value:
        for each in node.values:
            self._value(each)
        first = node.values[0] if node.values else None
        is_local = isinstance(first, ast.Constant) and bool(_NO_SCHEME.match(str(first.value)))
        if isinstance(first, ast.FormattedValue):  # a folder's path and a separator
            rest = node.values[1] if len(node.values) > 1 else None
            text = str(rest.value) if isinstance(rest, ast.Constant) else ""
            is_last = len(node.values) == 2 and ":" not in text
            is_separated = bool(_NO_SCHEME.match(text)) or (bool(text) and is_last)
            is_local = self._resolved_local(first.value) and is_separated
        if isinstance(first, ast.Constant) and _ADDRESS.match(str(first.value)):
            is_local = False
        return Value(owned=DEEP, is_local=is_local)

    def _resolved_local(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and self._name(node.id).is_local

    def _comprehension(self, generators: Sequence[ast.comprehension], *parts: ast.expr) -> Value:
        outer = self._scope
        scope = Scope(parent=outer, is_comprehension=True)
        for generator in generators:
            element = self._iterated(generator.iter)
            self._scope = scope
            self._bind_inside(generator.target, element, scope)
            for condition in generator.ifs:
                self._value(condition)
        values = [self._value(part) for part in parts]
        self._scope = outer
        scope.is_done = True
        owned = DEEP if all(value.owned == DEEP for value in values) else SHALLOW
        return Value(owned=owned, is_local=all(value.is_local for value in values))

    def _bind_inside(self, target: ast.expr, value: Value, scope: Scope) -> None:
        """Bind the target of a comprehension, which is a name of the comprehension only."""
        match target:
            case ast.Name():
                scope.bind(target.id, value)
            case ast.Tuple() | ast.List():
                for each in target.elts:
                    self._bind_inside(each, value.part, scope)
            case ast.Starred():
                self._bind_inside(target.value, value, scope)
            case _:
                self._bind(target, value)

    def _subscript(self, node: ast.Subscript) -> Value:
        base = self._value(node.value)
        self._value(node.slice)
        if base.owned == DEEP:
            return base if isinstance(node.slice, ast.Slice) else base.part
        if base.path is not None:
            return Value(owned=SHALLOW)
        is_text = isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str)
        return Value(
            owned=SHALLOW if _copies(node.slice) else NOT,
            is_local=base.is_local,
            is_path=base.is_path and not is_text,
        )

    def _resolved(self, node: ast.expr) -> Value:
        """Return what a name or attribute is, without a reason for using it."""
        if isinstance(node, ast.Name):
            return self._name(node.id)
        if not isinstance(node, ast.Attribute):
            return self._value(node)
        base = self._resolved(node.value)
        if base.path is not None:
            return Value(path=f"{base.path}.{node.attr}")
        return self._attribute(node, base)

    def _attribute(self, node: ast.Attribute, base: Value) -> Value:
        """Return what an attribute of a value is; add the reasons for using it."""
        self._attribute_name(node)
        if node.attr in known.TRANSPARENT:
            return Value(owned=base.owned, is_strange=base.is_strange)
        is_outer = node.attr in self._outer_attributes
        is_part = node.attr in ("parent", "name", "stem") and base.is_local
        return Value(
            owned=DEEP if base.owned == DEEP and not is_outer else NOT,
            is_local=is_part,
            is_path=base.is_path and node.attr == "parent",
            is_strange=base.is_strange,
        )

    def _attribute_name(self, node: ast.Attribute) -> None:
        name = node.attr
        is_own = isinstance(node.value, ast.Name) and node.value.id in self._selves
        if name.startswith("__"):
            is_harmless = name in known.HARMLESS_DUNDERS or _shown(node.value) == "super()"
            if not (is_harmless or (is_own and not name.endswith("__"))):
                self.add(_line(node), known.INTERNALS, name)
        elif name.startswith("_"):
            if not is_own and name != "_":
                self._unknown(node, "uses the private attribute", name)
        elif name in known.HARMFUL_METHODS:
            self.add(_line(node), known.HARMFUL_METHODS[name], name)

    def _use(self, path: str, node: ast.expr, *, called: bool) -> Harm | None:
        """Add the reason for using a known name; return what it does."""
        harm = harm_of(path)
        name = path.removeprefix("builtins.").removeprefix("__main__.")
        if harm is None:
            if name.rpartition(".")[2].startswith("__"):
                self.add(_line(node), known.INTERNALS, name)
            else:
                self._unknown(node, "calls" if called else "uses", name or _shown(node))
        elif path in known.CHECKED and not called:
            self._unknown(node, "passes on", name)
        elif path not in known.CHECKED and (called or harm[0] not in ("read", "plot")):
            self.add(_line(node), harm, name)
        return harm

    # -- calls -------------------------------------------------------------------------------------

    def _call(self, node: ast.Call) -> Value:
        func = node.func
        if isinstance(func, ast.Attribute):
            base = self._resolved(func.value)
            if base.path is not None:
                return self._known_call(node, f"{base.path}.{func.attr}")
            self._attribute(func, base)
            return self._method_call(node, func, base)
        target = self._resolved(func)
        if target.path is not None:
            return self._known_call(node, target.path)
        self._arguments(node)
        if not target.is_function:
            self._unknown(node, "calls", _shown(func))
        return Value(owned=SHALLOW, is_own_class=True) if target.is_own_class else OUTER

    def _known_call(self, node: ast.Call, path: str) -> Value:
        harm = self._use(path, node, called=True)
        values = self._arguments(node, path)
        if path in known.MUTATES_FIRST and node.args:
            self._mutate_value(values[0], node.args[0], node)
        if path in known.CHECKED:
            return self._checked_call(node, path)
        if path.startswith("pathlib."):
            for each in node.args:
                self._check_hidden(node, each)
        if path in ("re.sub", "re.subn"):
            for each in node.args[1:2]:
                self._check_callback(each, self._again(each), is_named=False)
        if path == "builtins.print":
            self._check_print(node)
        if any(each.arg == "inplace" and not _is_false(each.value) for each in node.keywords):
            self._mutate_value(OUTER, node.args[0] if node.args else node, node)
        if harm is None:
            return OUTER
        deepest = min((DEEP if each.path else each.owned for each in values), default=DEEP)
        if path in _ELEMENT_OF:
            deepest = DEEP if deepest == DEEP else NOT
        if path in known.ALIASING:
            return Value(owned=deepest, is_local=bool(values) and values[0].is_local)
        is_glob = path.startswith(("glob.", "os.listdir", "os.path.", "pathlib."))
        first = values[0] if values else LITERAL
        return Value(
            owned=DEEP if deepest == DEEP else SHALLOW,
            is_function=path in known.CALLABLE_RESULTS,
            is_local=path.startswith(("io.", "glob.", "os.listdir", "os.getcwd", "pathlib."))
            or (path in ("builtins.sorted", "builtins.list", "builtins.str") and first.is_local)
            or (is_glob and bool(node.args) and _is_named_folder(node.args[0], first)),
            is_path=path.startswith("pathlib.") or (first.is_path and path == "builtins.sorted"),
        )

    def _arguments(self, node: ast.Call, path: str = "") -> list[Value]:
        """Read a call's arguments; return what is known of them."""
        values = []
        calls_first = path in known.CALLBACK_FUNCTIONS
        func = node.func
        method = func.attr if not path and isinstance(func, ast.Attribute) else ""
        calls_all = method in known.CALLBACK_METHODS
        is_named = method in ("agg", "aggregate", "apply", "transform")
        for index, arg in enumerate(node.args):
            values.append(self._module_or_value(arg, path in _LOOKS_ONLY))
            if calls_all or (calls_first and index == 0):
                self._check_callback(arg, values[-1], is_named=is_named)
        for keyword in node.keywords:
            values.append(self._value(keyword.value))
            name = keyword.arg or ""
            if name in known.CALLBACK_KEYWORDS and name not in known.CALLED_OR_NAMED:
                self._check_callback(keyword.value, values[-1], is_named=is_named)
            elif name == "out" and values[-1].owned == NOT and not _is_none(keyword.value):
                self._mutate_value(values[-1], keyword.value, node)
            elif name in ("storage_options", "backend"):
                self._unknown(node, "sets", name)
            elif is_named:
                self._check_named(keyword.value)
        return values

    def _check_callback(self, node: ast.expr, value: Value, *, is_named: bool) -> None:
        """Check a function that is passed on to be called."""
        self._check_named(node)
        parts = node.values if isinstance(node, ast.Dict) else getattr(node, "elts", None)
        if parts is not None:
            for part in parts:
                self._check_callback(part, self._again(part), is_named=is_named)
            return
        if isinstance(node, ast.Attribute) and node.attr in known.MUTATING_METHODS:
            self._mutate_value(self._resolved(node.value), node.value, node)
        if value.path is not None or _is_safe_callback(value):
            return
        if isinstance(node, ast.Attribute) and method_harm(node.attr) == known.PURE:
            return
        if value.owned and not (is_named and isinstance(node, ast.BinOp | ast.JoinedStr)):
            is_text = is_named and not isinstance(node, ast.Call | ast.Dict | ast.List)
            if not is_text:
                return
        self._unknown(node, "passes on", _shown(node))

    def _check_named(self, node: ast.expr) -> None:
        """Check methods that are named by texts, such as in `agg("to_csv")`."""
        for each in ast.walk(node):
            if isinstance(each, ast.Constant) and isinstance(each.value, str):
                name = each.value
                if name in known.HARMFUL_METHODS or name in known.TEXT_WRITERS:
                    self.add(_line(each), known.HARMFUL_METHODS.get(name, known.WRITE), name)

    def _check_print(self, node: ast.Call) -> None:
        for keyword in node.keywords:
            if keyword.arg == "file":
                value = self._again(keyword.value)
                if not (value.owned or value.path or _is_none(keyword.value)):
                    self.add(_line(node), known.WRITE, "print")

    def _method_call(self, node: ast.Call, func: ast.Attribute, base: Value) -> Value:
        name = func.attr
        values = self._arguments(node)
        if base.is_own_class and name in self._methods:
            return OUTER
        if name in known.MUTATING_METHODS or name == "sort":
            for value in values:
                self._put_in(func.value, value)
        harm = method_harm(name)
        if base.is_strange:
            self._unknown(node, "calls", _shown(func))
        elif harm is None:
            if not name.startswith("_"):
                self._unknown(node, "calls the method", name)
        else:
            self.add(_line(node), harm, name)
        self._check_method(node, func, base)
        is_path = base.is_path and (name.startswith("with_") or name in ("joinpath", "resolve"))
        if base.is_path and name in ("glob", "rglob", "iterdir"):
            return Value(owned=SHALLOW, is_local=True, is_path=True)
        if name in known.ALIASING_METHODS:
            owned = base.owned
        else:
            deepest = min((value.owned for value in values), default=DEEP)
            owned = DEEP if min(base.owned, deepest) == DEEP else SHALLOW
        return Value(
            owned=owned, is_path=is_path, is_local=is_path, is_function=name in ("poly1d",)
        )

    def _check_method(self, node: ast.Call, func: ast.Attribute, base: Value) -> None:
        """Check a method whose arguments decide what it does."""
        name = func.attr
        if name in known.TEXT_WRITERS:
            targets = {"path_or_buf", "buf", "path", "excel_writer", None}
            if node.args or any(each.arg in targets for each in node.keywords):
                self.add(_line(node), known.WRITE, name)
        elif name == "open":
            self._check_mode(node, node.args[:1])
        elif name in ("replace", "rename"):
            is_one = len(node.args) == 1 and not node.keywords
            is_literal = is_one and isinstance(node.args[0], ast.Dict | ast.Lambda)
            is_mine = isinstance(func.value, ast.Call | ast.Subscript) or base.owned
            has_target = any(each.arg in ("target", None) for each in node.keywords)
            if base.is_path or has_target or (is_one and not is_literal and not is_mine):
                self.add(_line(node), ("files", "may move a file"), name)
        elif name == "query":
            self._check_query(node)
        elif name in ("get", "parse", "load", "read") and any(map(_is_address, node.args)):
            self.add(_line(node), known.NETWORK, name)
        is_sort = name == "sort" and not node.args
        if is_sort or (name in known.MUTATING_METHODS and name not in known.HARMFUL_METHODS):
            self._mutate_value(base, func.value, node)
        for keyword in node.keywords:
            is_off = isinstance(keyword.value, ast.Constant) and keyword.value.value is False
            if keyword.arg == "inplace" and not is_off:
                self._mutate_value(base, func.value, node)

    def _check_query(self, node: ast.Call) -> None:
        for each in (*node.args[:1], *(each.value for each in node.keywords)):
            text = each.value if isinstance(each, ast.Constant) else None
            is_flag = text is None or isinstance(text, bool)
            if not isinstance(each, ast.Constant) or (
                not is_flag and ("(" in str(text) or "__" in str(text))
            ):
                self.add(_line(node), known.DYNAMIC, "query")

    def _checked_call(self, node: ast.Call, path: str) -> Value:
        """Check a call whose arguments decide what it does."""
        if path in ("builtins.open", "io.open"):
            self._check_mode(node, node.args[1:2])
            if node.args:
                self._check_hidden(node, node.args[0])
            return Value(owned=SHALLOW, is_local=True)
        if path == "builtins.getattr":
            return self._getattr(node)
        if path == "builtins.type":
            if len(node.args) != 1 or node.keywords:
                self.add(_line(node), known.INTERNALS, "type")
            return OUTER
        if path == "numpy.load":
            for keyword in node.keywords:
                if keyword.arg in ("allow_pickle", None) and not _is_false(keyword.value):
                    self.add(_line(node), known.PICKLE, path)
                if keyword.arg == "mmap_mode":
                    self._check_mode(node, [keyword.value])
        where = [*node.args[:1], *(each.value for each in node.keywords if each.arg in _SOURCES)]
        for each in where:
            value = self._again(each)
            if any(map(_is_address, ast.walk(each))):
                self.add(_line(node), ("network", "reads from the network"), path)
            elif not value.is_local:
                harm: Harm = ("network", "reads from an address that the rules cannot see")
                self.add(_line(node), harm, path)
            self._check_hidden(node, each)
        is_open = any(isinstance(each, ast.Starred) for each in node.args)
        if is_open or any(each.arg is None for each in node.keywords):
            self._unknown(node, "calls", path)
        if path != "matplotlib.pyplot.style.use":
            self.add(_line(node), known.READ, path)
        return FRESH

    def _check_mode(self, node: ast.Call, modes: Sequence[ast.expr]) -> None:
        keywords = {each.arg: each.value for each in node.keywords}
        if "opener" in keywords or None in keywords:
            self._unknown(node, "calls", "open")
        mode = next(iter(modes), None) or keywords.get("mode")
        if any(isinstance(each, ast.Starred) for each in node.args):
            self.add(_line(node), known.WRITE, "open")
        elif mode is None or (isinstance(mode, ast.Constant) and _is_read_mode(mode.value)):
            self.add(_line(node), known.READ, "open")
        elif isinstance(mode, ast.Constant):
            self.add(_line(node), known.WRITE, f"open({mode.value!r})")
        else:
            self.add(_line(node), ("files", "may write a file"), "open")

    def _check_hidden(self, node: ast.Call, path: ast.expr) -> None:
        for each in ast.walk(path):
            is_text = isinstance(each, ast.Constant) and isinstance(each.value, str)
            if isinstance(each, ast.Constant) and is_text and _HIDDEN.search(str(each.value)):
                self.add(_line(node), ("files", "reads a hidden or system file"))

    def _getattr(self, node: ast.Call) -> Value:
        name = node.args[1] if len(node.args) > 1 else None
        if not (isinstance(name, ast.Constant) and isinstance(name.value, str)):
            self.add(_line(node), ("dynamic", "gets an attribute that the rules cannot see"))
            return OUTER
        base = self._again(node.args[0])
        if base.path is not None:
            path = f"{base.path}.{name.value}"
            self._use(path, node, called=False)
            return Value(path=path)
        attribute = ast.Attribute(value=node.args[0], attr=name.value, ctx=ast.Load())
        return self._attribute(ast.copy_location(attribute, node), base)

    # -- changes -----------------------------------------------------------------------------------

    def _mutate(self, changed: ast.expr, node: ast.AST) -> None:
        """Add a reason if a statement changes what this source did not make."""
        value = self._resolved(changed)
        if value.path is not None:
            self._change_known(value.path, node)
        else:
            self._mutate_value(value, changed, node)

    def _mutate_value(self, value: Value, changed: ast.expr, node: ast.AST) -> None:
        if value.owned == NOT:
            name = _shown(changed)
            shown = name if len(name) <= SHOWN else f"{name[: SHOWN - 1]}…"
            self.add(_line(node), ("variables", f"changes `{shown}`, which it did not make"))

    def _change_known(self, path: str, node: ast.AST) -> None:
        """Check a change of a module or of its settings."""
        if path.startswith(("pandas.options.display", "pandas.options.mode")):
            return
        if path in ("matplotlib.rcParams", "matplotlib.pyplot.rcParams"):
            key = node.slice if isinstance(node, ast.Subscript) else None
            if isinstance(key, ast.Constant) and str(key.value).startswith(_PLOT_SETTINGS):
                return
        self.add(_line(node), ("dynamic", "changes a module or class"), path)


_ELEMENT_OF: Final = ("builtins.next", "builtins.max", "builtins.min")
"""Functions that return an element of what they get."""
_LOOKS_ONLY: Final = (
    *(
        f"builtins.{name}"
        for name in ("help", "dir", "hasattr", "getattr", "type", "print", "repr")
    ),
)
"""Functions that may get a module."""
_SOURCES: Final = ("filepath_or_buffer", "io", "path", "path_or_buf", "path_or_buffer", "source")
_PLOT_SETTINGS: Final = (
    "figure.",
    "axes.",
    "font.",
    "lines.",
    "legend.",
    "grid.",
    "xtick.",
    "ytick.",
    "image.",
)


def _line(node: ast.AST) -> int:
    return getattr(node, "lineno", 1)


def _root(path: str) -> str:
    return path.partition(".")[0]


def _shown(node: ast.expr) -> str:
    """Return an expression's source, as far as it is a name."""
    match node:
        case ast.Name():
            return node.id
        case ast.Attribute():
            return f"{_shown(node.value)}.{node.attr}"
        case ast.Call():
            return f"{_shown(node.func)}()"
        case ast.Subscript():
            return f"{_shown(node.value)}[…]"
        case _:
            return "…"


def _public(path: str) -> str:
    """Return the public name of what a library defines in an inner module."""
    if harm_of(path) is not None:
        return path
    parts = path.split(".")
    for count in range(len(parts) - 2, 0, -1):
        shorter = ".".join((*parts[:count], parts[-1]))
        if harm_of(shorter) is not None:
            return shorter
    return path


def _usual_names(path: str) -> list[str]:
    """Return the names by which a module, function or class is usually imported."""
    aliases = [name for name, meant in _ALIASES.items() if meant == path]
    return [path.rpartition(".")[2], *aliases]


def _is_safe_callback(value: Value) -> bool:
    return value.is_function or value.is_plain


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _is_read_mode(mode: object) -> bool:
    return isinstance(mode, str) and set(mode) <= set("rbtU")


def _is_address(node: ast.AST) -> bool:
    text = node.value if isinstance(node, ast.Constant) else None
    return isinstance(text, str) and bool(_ADDRESS.match(text)) and len(text) > 3


def _is_separated(op: ast.operator, node: ast.expr) -> bool:
    """Return whether a text stays local, whatever is added to it."""
    if isinstance(op, ast.Div):
        return True
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return is_text and bool(_NO_SCHEME.match(str(getattr(node, "value", ""))))


def _is_named_folder(node: ast.expr, value: Value) -> bool:
    """Return whether a path begins with a folder, so that no address can follow."""
    if isinstance(node, ast.Constant):
        return bool(node.value) and value.is_local
    return value.is_local


def _copies(index: ast.expr) -> bool:
    """Return whether indexing copies: by a mask or a list."""
    match index:
        case ast.Compare() | ast.List() | ast.Call() | ast.UnaryOp():
            return True
        case ast.BinOp():
            return isinstance(index.op, ast.BitAnd | ast.BitOr)
        case ast.Tuple():
            return any(map(_copies, index.elts))
        case _:
            return False
