"""Reads the user's variables, and what changed of them since the last look.

Sent to kernels with `resident.py`, which says what it must not do.
"""

from __future__ import annotations

import re
import sys
from _thread import LockType, RLock
from gc import get_referents
from itertools import islice
from json import dumps
from time import thread_time
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple
from weakref import ref

from .arrays import (
    ITEMS,
    PLAIN,
    PREVIEW,
    axes_of,
    columns_of,
    cut,
    dtypes_of,
    has_known,
    is_in_memory,
    is_number,
    mro_of,
    named,
    plain,
    table,
    table_type,
)

VARIABLES_SOURCE = "agent_exec"
"""Source name of the payload in a reply."""

MOST_CHANGES = 200
PART_SECONDS = 5e-7
"""Seconds of processor time for each part that there is room for."""
PART_BYTES = 1_024
"""Bytes of an array that are read as quickly as one part."""
PIECE = 1 << 17
"""Items of an array that are read at a time."""
COLUMN_PARTS = 60
"""How many parts are read as quickly as a column of a table is found."""

PARTS = 120
"""The most parts of a variable's value to read: the items of all its nested collections."""
DEPTH = 3

BRACKETS = {
    id(list): (list, "[", "]"),
    id(tuple): (tuple, "(", ")"),
    id(dict): (dict, "{", "}"),
    id(set): (set, "{", "}"),
    id(frozenset): (frozenset, "frozenset({", "})"),
}

FIXED = {
    id(kind)
    for kind in (
        *(BuiltinFunctionType, CodeType, FunctionType, LockType, RLock, ModuleType, range, ref),
        *(slice, property, type(Ellipsis), type(NotImplemented)),
    )
}
"""Types whose instances are compared by identity, for what they hold never changes, or is code."""
OPEN = {*BRACKETS, *PLAIN, id(object)}
"""Types that hold nothing that the garbage collector is not told, or never change."""
FIXED_LIBRARIES = ("datetime", "decimal", "fractions", "pathlib", "pyarrow", "re", "uuid")
FIXED_ENDS = {
    "numpy": ("ufunc", "_ArrayFunctionDispatcher", "DType"),
    "pandas": ("Index", "Dtype", "Timestamp", "Timedelta", "Period", "Interval", "NaTType"),
}
"""How the names of types end that are as fixed, by library."""
SMALL = 1_000
"""Characters of a text, or bits of a number, that is kept until the next look."""
SET_OFTEN = re.compile(r"_{1,3}|_i{1,3}|_i?\d+|_exit_code|__\w+__")
"""Variables that Python and IPython set."""
SIZED = ((1 << 25, list), (1 << 26, tuple), (1 << 27, bytes), (1 << 28, str), (1 << 29, dict))
"""Flags of the classes that inherit from these types, and with them their length."""
IS_A_CLASS = 1 << 31
"""Flag of a class whose instances are classes."""

flags_of = vars(type)["__flags__"].__get__

namespace_of = vars(type)["__dict__"].__get__

looks: list[dict[str, Any]] = []
"""The last look, if there was one."""


def items_of(value: Any, kind: Any) -> Any:
    """Return some of a collection's items: the first, and in a long list others too."""
    if kind is dict:
        return [part for item in islice(dict.items(value), ITEMS) for part in item]
    if kind is list or kind is tuple:
        more = value[ITEMS :: len(value) // ITEMS] if len(value) > ITEMS else ()
        return [*value[:ITEMS], *more]
    return list(islice(value, ITEMS))


def collected(value: Any, kind: Any, depth: int, parts: list[int]) -> tuple[str, str]:
    """Return the preview and the fingerprint of a built-in collection.

    `parts` is how many items may still be read.
    """
    _, opening, closing = BRACKETS[id(kind)]
    texts: list[str] = []
    known = [str(len(value))] if len(value) <= ITEMS else [f"{len(value)} {id(value)}"]
    room = PREVIEW
    for item in items_of(value, kind):
        its = type(item)
        parts[0] -= 1
        if id(its) in PLAIN:
            text, print_ = plain(item, its)
        elif id(its) in BRACKETS and depth > 1 and parts[0] > 0:
            text, print_ = collected(item, its, depth - 1, parts)
        else:
            text, print_ = None, str(id(item))
        known.append(print_)
        if room > 0:
            texts.append(f"<{named(its)[1]}>" if text is None else text)
            room -= len(texts[-1]) + 2
    if kind is dict:
        texts = [": ".join(pair) for pair in zip(texts[::2], texts[1::2])]  # noqa: B905
    shown = ", ".join(texts)
    if room > 0 and len(value) > ITEMS:
        shown += ", …"
    if kind is tuple and len(value) == 1:
        shown += ","
    if not value and (kind is set or kind is frozenset):
        return f"{kind.__name__}()", "0"
    return f"{opening}{shown}{closing}", ",".join(known)


def type_text(kind: Any) -> str:
    """Return the qualified name of a class."""
    module, name = named(kind)
    return cut(name if module in ("builtins", "__main__") else f"{module}.{name}", 200)[0]


def described(name: str, value: Any) -> list[Any]:
    """Return a variable's name, type, shape, length and preview, and its value's fingerprint."""
    kind = type(value)
    type_name = type_text(kind)
    shape, length, preview, known = None, None, None, f"{id(value)}"
    try:
        if id(kind) in PLAIN:
            preview, known = plain(value, kind)
        elif id(kind) in BRACKETS:
            preview, known = collected(value, kind, DEPTH, [PARTS])
        elif is_number(kind):
            preview = known = repr(value)
        else:
            shape, by = table(value, kind)
            known = by or known
        if shape is not None:
            shape = [int(size) for size in shape]
        else:
            flags = flags_of(kind)
            length = next((base.__len__(value) for flag, base in SIZED if flags & flag), None)
            if kind is set or kind is frozenset:
                length = len(value)
    except Exception:  # another thread changes the value, or a library has another version
        shape, length, preview = None, None, None
    if preview is not None:
        preview = cut(preview, PREVIEW)[0]
    return [name, type_name, shape, length, preview, hash((type_name, known, f"{shape}{length}"))]


def user_variables() -> list[tuple[str, Any]] | None:
    """Return the names that ``%who`` would list, oldest first; None if that is unknown.

    So IPython's own names, and names that begin with an underscore, are left out.
    """
    shell = sys.modules["IPython"].get_ipython()
    hidden = shell.user_ns_hidden
    if type(shell.user_ns) is not dict:
        return None
    return [
        item
        for item in list(shell.user_ns.items())
        if type(item[0]) is str
        and item[0][:1] != "_"
        and item[0].isidentifier()
        and (item[0] not in hidden or hidden[item[0]] is not item[1])
    ]


# -- changes ---------------------------------------------------------------------------------------


def is_fixed(kind: Any) -> bool:
    """Return whether instances of a class are compared by identity, as classes themselves are."""
    if id(kind) in FIXED or flags_of(kind) & IS_A_CLASS:
        return True
    module, name = named(kind)
    library = module.partition(".")[0]
    return library in FIXED_LIBRARIES or name.endswith(FIXED_ENDS.get(library, "?"))


def is_python(kind: Any) -> bool:
    """Return whether a class, or one that it inherits from, was written in Python."""
    spaces = [namespace_of(base) for base in mro_of(kind)]
    return any("__slots__" in space or "__weakref__" in space for space in spaces)


def is_open(kind: Any) -> bool:
    """Return whether the garbage collector is told all that an instance of a class holds.

    It is, unless code in C keeps something of its own.
    """
    module, name = named(kind)
    is_array = module.partition(".")[0] == "pandas" and name.endswith(("Array", "Categorical"))
    return is_array or all(
        id(base) in OPEN or named(base)[0] == "collections" or is_python(base)
        for base in mro_of(kind)
    )


def held_by(value: Any, kind: Any, room: int) -> tuple[str, Any, int, bool]:
    """Return a value's own fingerprint, what it holds, the parts that this took, and if it is all.

    Raise TooLarge if it holds more than there is room for.
    """
    library, _ = table_type(kind)
    if id(kind) in BRACKETS:
        if len(value) > room:
            raise TooLarge
        items = dict.items(value) if kind is dict else ()
        return f"{len(value)}", [part for item in items for part in item] or list(value), 0, True
    if library == "numpy":
        size = value.size if value.dtype.hasobject else value.nbytes // PART_BYTES
        if size > room:
            raise TooLarge
        flat, known = value.ravel(order="K"), f"{value.dtype.str} {value.shape}"
        if value.dtype.hasobject:
            return known, flat.tolist(), 0, True
        if is_in_memory(value):
            pieces = (flat[n : n + PIECE] for n in range(0, flat.size, PIECE))
            return f"{known} {[hash(piece.tobytes()) for piece in pieces]}", (), size, True
    elif library == "pandas":
        known, dtypes = f"{axes_of(value)}", dtypes_of(value)
        size = (len(dtypes) + 1) * COLUMN_PARTS
        if size > room:
            raise TooLarge
        if has_known(dtypes):
            return known, list(columns_of(value, None)), size, True
    elif is_fixed(kind):
        return f"{id(value)}", (), 0, True
    elif is_number(kind):
        return repr(value), (), 0, True
    elif is_open(kind):
        return f"{id(value)}", get_referents(value), 0, True
    return f"{id(value)}", (), 0, False


def read(value: Any, room: list[int]) -> tuple[int, bool] | None:
    """Return the fingerprint of all that a value holds, and whether all of it could be seen.

    Take from `room` how many parts were read. Return None if they are more than half of it.
    """
    known, is_all, waiting, left = 0, True, [value], room[0] // 2
    room[0] -= left
    met: dict[int, Any] = {}
    try:
        while waiting:
            part = waiting.pop()
            kind = type(part)
            left -= 1
            if id(kind) in PLAIN:
                known = hash((known, id(kind), plain(part, kind)[1]))
            elif id(part) in met:
                known = hash((known, met[id(part)][0]))
            else:
                met[id(part)] = len(met), part  # it has to live, else another gets its id
                own, held, took, is_seen = held_by(part, kind, left - len(waiting))
                known = hash((known, id(kind), own, len(held)))
                is_all = is_all and is_seen
                waiting += held
                left -= took
            if left < len(waiting):
                raise TooLarge
    except Exception:  # it is too large, or another thread changes it
        return None
    finally:
        room[0] += max(0, left)
    return known, is_all


class Seen(NamedTuple):
    """What is kept of a variable until the next look."""

    kind: Any
    """Its type; None if it is IPython's own."""
    mark: Any = None
    """The value if `is_kept`, else a weak reference to it, or its `id`."""
    is_kept: bool = True
    """Whether the value is small, and never changes."""
    quick: int | None = None
    """A fingerprint of its size and a sample; None if there was no room."""
    whole: tuple[int, bool] | None = None
    """What `read` returned."""
    size: tuple[Any, ...] = (None, None, None)
    """Its shape, length and preview, as far as they are known."""


def seen(value: Any) -> Seen:
    """Return what is kept of a variable, before what it holds is read."""
    kind = type(value)
    size = len(value) if kind is str or kind is bytes else 0
    size = value.bit_length() if kind is int else size
    is_small = id(kind) in PLAIN and size <= SMALL
    if is_small or kind is range or named(kind)[0] in FIXED_LIBRARIES:
        return Seen(kind, value)
    try:
        return Seen(kind, ref(value), is_kept=False)
    except TypeError:
        return Seen(kind, id(value), is_kept=False)


def differs(before: Seen, now: Seen, value: Any) -> bool | None:
    """Return whether a variable has changed; None if that was not read."""
    kind, mark = now.kind, before.mark
    if before.kind is not kind or before.is_kept is not now.is_kept:
        return True
    if now.is_kept:
        is_plain = kind is not None and id(kind) in PLAIN
        return mark is not now.mark and not (
            is_plain and plain(mark, kind)[1] == plain(value, kind)[1]
        )
    is_same = mark() is value if type(mark) is ref else mark == id(value)
    if before.whole and now.whole:
        by_value = id(kind) in BRACKETS or table_type(kind)[0] in ("numpy", "pandas")
        if before.whole != now.whole or not (is_same or by_value):
            return True
        return False if now.whole[1] else None
    if not is_same or (None not in (before.quick, now.quick) and before.quick != now.quick):
        return True
    return False if id(kind) in PLAIN or is_fixed(kind) else None


def namespace() -> tuple[dict[str, Any], set[str]]:
    """Return all variables, and the names of those that are IPython's own.

    Those that Python and IPython set by themselves are left out.
    """
    shell = sys.modules["IPython"].get_ipython()
    values = {
        name: value
        for name, value in list(shell.user_ns.items())
        if type(name) is str and (name[:1] != "_" or not SET_OFTEN.fullmatch(name))
    }
    hidden = shell.user_ns_hidden.items()
    return values, {name for name, value in hidden if name in values and values[name] is value}


def look(room: int) -> None:
    """Add to the reply how the variables differ from those of the look before.

    Parameters
    ----------
    room
        How many parts of values may be read.
    """
    if type(sys.modules["IPython"].get_ipython().user_ns) is not dict:
        return
    values, own = namespace()
    before = looks[-1] if looks else {}
    now: dict[str, Seen] = {}
    for name, value in values.items():
        was = before.get(name)
        if not (was and was.is_kept and was.kind is type(value) and was.mark is value):
            was = Seen(None) if name in own else seen(value)
        now[name] = was
    names = [name for name, each in now.items() if not (each.is_kept or is_fixed(each.kind))]
    until = thread_time() + room * PART_SECONDS
    for name in reversed(names):
        if thread_time() > until:
            break
        *told, quick = described(name, values[name])
        now[name] = now[name]._replace(quick=quick, size=tuple(told[2:]))
    left, until = [room], until + room * PART_SECONDS
    for name in reversed(names):
        if thread_time() > until:
            break
        now[name] = now[name]._replace(whole=read(values[name], left))
    tell(VARIABLES_SOURCE, variables=dumps(differences(before, now, values) if looks else None))
    looks[:] = [now]


def differences(
    before: dict[str, Seen], now: dict[str, Seen], values: dict[str, Any]
) -> dict[str, Any]:
    """Return the added, changed and removed variables, in this order, and counts.

    Of very many, the last are listed.
    """
    found = [("added", name) for name in now if name not in before]
    verdicts = {
        name: each is not before[name] and differs(before[name], each, values[name])
        for name, each in now.items()
        if name in before
    }
    found += [("changed", name) for name, verdict in verdicts.items() if verdict]
    found += [("removed", name) for name in before if name not in now]
    return {
        "variables": [
            {
                "name": cut(name, 200)[0],
                "change": change,
                **(state(values[name]) if name in now else {"type": None}),
                "before": was(before[name]) if name in before else None,
            }
            for change, name in found[-MOST_CHANGES:]
        ],
        "more_variables": max(0, len(found) - MOST_CHANGES),
        "not_compared": sum(verdict is None for verdict in verdicts.values()),
    }


def state(value: Any) -> dict[str, Any]:
    """Return a value's type, shape, length and preview."""
    return dict(zip(("type", "shape", "length", "preview"), described("", value)[1:5]))  # noqa: B905


def was(before: Seen) -> dict[str, Any] | None:
    """Return what is known of a value that was seen before."""
    if before.kind is None:
        return None
    if before.is_kept:
        return state(before.mark)
    shape, length, preview = before.size
    return {"type": type_text(before.kind), "shape": shape, "length": length, "preview": preview}


def tell(source: str, **payload: str) -> None:
    """Add a payload to the reply."""
    shell = sys.modules["IPython"].get_ipython()
    shell.payload_manager.write_payload({"source": source, **payload})


class TooLarge(Exception):
    """A value is too large to be returned whole."""
