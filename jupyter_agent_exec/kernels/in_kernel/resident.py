"""Reads variables, values and packages in an IPython kernel, which never imports it.

The server sends this code once in a kernel's life. It stays there as the target of a comm, outside
every namespace of the user. The `user_expressions` of a request call its functions `look` and
`evaluate` after the request's code. Any other question is a comm that a client opens, so that a
subshell can answer while the kernel runs code. A subshell handles nothing else without side
effects: an `execute_request` there would show and close the figures of the running cell, take away
its `input()`, and swallow its last messages; any other request would get the output that the cell's
threads print.

Only `evaluate` runs code that a user or an agent wrote. All else must not. So it does not call
`len` or `repr` of a value, and reads no `__class__` or other attribute that a class could override.
It reads only exact built-in types, by their own methods, and public members of a few types of
well-known libraries. It compares values and types by identity, because a metaclass may even define
`==` and `hash`. One exception: a table of such a library may hold an array of a type that a user
wrote, and asks that for its `dtype` or `shape`.

A look compares identity and type of every variable with those of the look before. What a variable
holds is read too, as far as there is room: all of it, or else its size and a sample. What was not
read whole, and shows no change, is counted as not compared.
"""

from __future__ import annotations

import re
import sys
from _thread import LockType, RLock
from collections.abc import Iterator
from contextlib import suppress
from gc import get_referents
from itertools import islice
from json import dumps, loads
from math import isfinite
from reprlib import Repr
from time import thread_time
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple
from weakref import ref

TARGET = "jupyter_agent_exec"
ANSWER = "agent_exec_told"
VARIABLES_SOURCE = "agent_exec"
VALUES_SOURCE = "agent_exec_values"
"""Source names of the payloads in a reply."""

MOST_CHANGES = 200
PART_SECONDS = 5e-7
"""Seconds of processor time for each part that there is room for."""
PART_BYTES = 1_024
"""Bytes of an array that are read as quickly as one part."""
PIECE = 1 << 17
"""Items of an array that are read at a time."""
COLUMN_PARTS = 60
"""How many parts are read as quickly as a column of a table is found."""
PREVIEW = 80
ITEMS = 40
"""The most items of a collection, or columns of a table, to read."""
PARTS = 120
"""The most parts of a variable's value to read: the items of all its nested collections."""
DEPTH = 3
SAMPLES = 128
WHOLE_BYTES = 8_192
"""An array of up to this many bytes is read whole; a larger one is sampled."""
MOST_EACH = MOST_ALL = 1_000_000
"""Characters of one value as JSON, and of all values."""
MOST_REPR = 10_000
MOST_DEPTH = 40
MOST_NODES = 500_000
"""The most values to read within one value."""
MOST_BITS = 10_000
ROWS = 10
COLUMNS = 100
NAME = 100
MOST_CELL = 200
RANGE_ITEMS = 10_000_000
"""An array with more is not searched for its range."""

BRACKETS = {
    id(list): (list, "[", "]"),
    id(tuple): (tuple, "(", ")"),
    id(dict): (dict, "{", "}"),
    id(set): (set, "{", "}"),
    id(frozenset): (frozenset, "frozenset({", "})"),
}
PLAIN = {id(kind) for kind in (int, float, bool, complex, str, bytes, type(None))}
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
TABLES = {
    "numpy": ("ndarray",),
    "pandas": ("DataFrame", "Series"),
    "polars": ("DataFrame", "Series"),
    "torch": ("Tensor",),
    "xarray": ("DataArray",),
}
NUMBERS = ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool")
"""Scalar types of NumPy, with a safe `repr`."""

flags_of = vars(type)["__flags__"].__get__
module_of = vars(type)["__module__"].__get__
qualname_of = vars(type)["__qualname__"].__get__
mro_of = vars(type)["__mro__"].__get__
namespace_of = vars(type)["__dict__"].__get__

looks: list[dict[str, Any]] = []
"""The last look, if there was one."""

short = Repr()
short.maxlevel = 6
short.maxdict = short.maxlist = short.maxtuple = short.maxset = short.maxfrozenset = 100
short.maxstring = short.maxlong = short.maxother = 2_000


def named(kind: Any) -> tuple[str, str]:
    """Return the module and the qualified name of a class, with any metaclass."""
    module, name = module_of(kind), qualname_of(kind)
    return (module if type(module) is str else "?"), (name if type(name) is str else "?")


def is_of(library: str, name: str, kind: Any) -> bool:
    """Return whether a class is the one in its library, rather than one that claims its name."""
    module = sys.modules.get(library)
    return type(module) is ModuleType and vars(module).get(name) is kind


def table_type(kind: Any) -> tuple[str, str]:
    """Return library and name of an array's or a table's class; empty if it is none we know."""
    module, name = named(kind)
    library = module.partition(".")[0]
    if name in TABLES.get(library, ()) and is_of(library, name, kind):
        return library, name
    return "", ""


def is_number(kind: Any) -> bool:
    """Return whether a class is a scalar type of NumPy."""
    module, name = named(kind)
    return module == "numpy" and name in NUMBERS and is_of("numpy", name, kind)


def cut(text: Any, most: int) -> tuple[str, bool]:
    """Return the start of a text as it can be encoded, and whether something was cut off."""
    text = str.__str__(text)
    told = text if len(text) <= most else text[: most - 1] + "…"
    return told.encode("utf-8", "replace").decode(), len(text) > most


# -- arrays and tables -----------------------------------------------------------------------------


def is_in_memory(array: Any) -> bool:
    """Return whether a NumPy array is in memory for certain, and not on a disk."""
    base = array.base
    return base is None or (type(base) is type(array) and base.base is None)


def sampled(array: Any) -> str:
    """Return the fingerprint of a NumPy array, from its memory, or from a part if it is large."""
    sample = 0
    if is_in_memory(array):
        if array.nbytes <= WHOLE_BYTES:
            return f"{array.dtype.str} {hash(array.tobytes())}"
        sample = hash(array.flat[:: array.size // SAMPLES + 1].tobytes())
    place = array.__array_interface__["data"][0]  # its `id` would be that of a view
    return f"{place} {sample}"


def has_known(dtypes: Any) -> bool:
    """Return whether all dtypes are NumPy's or pandas' own."""
    dtype: Any = vars(sys.modules["numpy"])["dtype"]
    kinds = {id(type(each)): type(each) for each in dtypes}.values()
    return all(
        any(base is dtype for base in mro_of(kind)) or is_of("pandas", named(kind)[1], kind)
        for kind in kinds
    )


def size_of(index: Any) -> int | None:
    """Return the length of an index of pandas; None unless all of it is pandas' own."""
    is_own = is_of("pandas", named(type(index))[1], type(index))
    return len(index) if is_own and has_known([index.dtype]) else None


def dtypes_of(value: Any) -> list[Any]:
    """Return the dtypes of a table's columns, or of a series."""
    return list(value.dtypes) if len(value.axes) > 1 else [value.dtype]


def columns_of(value: Any, most: int | None) -> Iterator[Any]:
    """Yield the columns of a table or a series of pandas: arrays of NumPy, or of pandas' own."""
    columns = [(None, value)] if len(value.axes) == 1 else islice(value.items(), most)
    for _, column in columns:
        array = column.array
        name = named(type(array))[1]
        if name in ("NumpyExtensionArray", "PandasArray"):
            yield array.to_numpy()
        elif name in ("DatetimeArray", "TimedeltaArray", "PeriodArray"):
            yield array.asi8
        else:
            yield array


def axes_of(value: Any) -> list[Any]:
    """Return what tells the axes of a table or a series of pandas from others."""
    named_as = [list(axis.names) for axis in value.axes]
    return [
        *map(id, value.axes),
        *(
            plain(x, type(x))[1] if id(type(x)) in PLAIN else id(x)
            for each in named_as
            for x in each
        ),
    ]


def pandas_table(value: Any) -> tuple[Any, str]:
    """Return the shape and the fingerprint of a table or a series of pandas."""
    parts = axes_of(value)
    if has_known(dtypes_of(value)):
        parts += [
            sampled(array) if table_type(type(array))[0] == "numpy" else id(array)
            for array in columns_of(value, ITEMS)
        ]
    sizes = [size_of(axis) for axis in value.axes]
    return (None if None in sizes else sizes), f"{parts}"


def table(value: Any, kind: Any) -> tuple[Any, str]:
    """Return the shape and the fingerprint of an array or a table of a well-known library."""
    library, _ = table_type(kind)
    if library == "pandas":
        return pandas_table(value)
    if library:
        return value.shape, (sampled(value) if library == "numpy" else "")
    size = size_of(value) if named(kind)[1].endswith("Index") else None
    return (None if size is None else [size]), ""


def types_of(value: Any) -> tuple[str | None, dict[str, str] | None, str | None]:
    """Return an array's dtype, a table's dtypes by column, and the type of a table's index."""
    library, name = table_type(type(value))
    try:
        if library == "numpy":
            return str(value.dtype), None, None
        if library != "pandas" or None in [size_of(axis) for axis in value.axes]:
            return None, None, None
        index: str | None = named(type(value.index))[1]
        index = None if index == "RangeIndex" else index
        dtypes = [
            str(each)[:NAME] if has_known([each]) else named(type(each))[1][:NAME]
            for each in dtypes_of(value)[:COLUMNS]
        ]
        if name == "Series":
            return dtypes[0], None, index
        names = [
            cut(str(each) if id(type(each)) in PLAIN else f"<{named(type(each))[1]}>", NAME)[0]
            for each in islice(value.columns, COLUMNS)
        ]
        return None, dict(zip(names, dtypes)), index  # noqa: B905
    except Exception:  # another thread changes the value, or pandas is another version
        return None, None, None


# -- variables -------------------------------------------------------------------------------------


def plain(value: Any, kind: Any) -> tuple[str | None, str]:
    """Return the preview and the fingerprint of a plain value."""
    if kind is str or kind is bytes:
        shown, size = repr(value[: PREVIEW + 1]), len(value)
        if size <= PREVIEW:
            return shown, shown
        sample = value if size <= 50_000 else value[:: size // SAMPLES]
        return shown, f"{size} {hash(sample)}"
    if kind is int and value.bit_length() > 400:
        return None, f"{value.bit_length()} {hash(value)}"
    shown = repr(value)
    return shown, shown


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


# -- values: these run the user's code -------------------------------------------------------------


class NoJSON(Exception):
    """A value is not JSON."""


class TooLarge(Exception):
    """A value is too large to be returned whole."""


def as_json(value: Any) -> dict[str, Any]:
    """Return a value that is exactly JSON; raise NoJSON or TooLarge otherwise."""
    told: dict[str, Any] = {"status": "ok", "json": value}
    if is_number(type(value)):
        told = {"status": "ok", "json": value.item(), "type": named(type(value))[1]}
    nodes, characters, waiting = 0, 0, [(told["json"], 0)]
    while waiting:
        each, depth = waiting.pop()
        kind = type(each)
        if kind is dict:
            if any(type(key) is not str for key in each):
                raise NoJSON
            waiting += [(item, depth + 1) for item in (*each, *each.values())]
        elif kind is list:
            waiting += [(item, depth + 1) for item in each]
        elif kind is str:
            characters += len(each)
        elif kind is int and not -(1 << 63) <= each < 1 << 64:
            raise NoJSON  # readers of the JSON would make it a float
        elif id(kind) not in PLAIN:
            raise NoJSON
        nodes += 1
        too_many = nodes + len(waiting) > MOST_NODES or characters > MOST_EACH
        if too_many or depth > MOST_DEPTH:
            raise TooLarge
    try:
        text = dumps(told["json"], ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, TypeError):  # not a number, a lone surrogate, bytes
        raise NoJSON from None
    if len(text) > MOST_EACH:
        raise TooLarge
    return told


def cell(value: Any) -> Any:
    """Return the value of a table's cell."""
    value = value.item() if is_number(type(value)) else value
    if type(value) is float and not isfinite(value):
        return None
    if type(value) is not str and id(type(value)) in PLAIN:
        with suppress(NoJSON):
            return as_json(value)["json"]
    return cut(str(value), MOST_CELL)[0]


def labels(names: Any) -> list[str]:
    """Return the names of columns, each of them once."""
    told: list[str] = []
    for name in names:
        label = cut(str(name), MOST_CELL)[0]
        known, n = label, 1
        while label in told:
            label, n = f"{known}.{n}", n + 1
        told.append(label)
    return told


def describe_table(value: Any, is_pandas: bool, told: dict[str, Any]) -> None:
    """Describe a table of pandas or polars."""
    told["shape"] = [int(size) for size in value.shape]
    told["truncated"] = value.shape[1] > COLUMNS
    part = value.iloc[:ROWS, :COLUMNS] if is_pandas else value[:ROWS, :COLUMNS]
    names = labels(part.columns)
    columns = [each for _, each in part.items()] if is_pandas else part.get_columns()
    told["dtypes"] = dict(zip(names, map(str, part.dtypes)))  # noqa: B905
    if is_pandas and named(type(value.index))[1] != "RangeIndex":
        told["index"] = [cut(str(label), MOST_CELL)[0] for label in part.index]
    rows = zip(*[map(cell, each.to_list()) for each in columns])  # noqa: B905
    told["head"] = [dict(zip(names, row)) for row in rows]  # noqa: B905


def describe_array(value: Any, told: dict[str, Any]) -> None:
    """Describe an array of NumPy."""
    told["shape"] = [int(size) for size in value.shape]
    told["dtype"] = str(value.dtype)
    if 0 < value.size <= RANGE_ITEMS and value.dtype.kind in "biuf":
        numpy = sys.modules["numpy"]
        ends = [float(end.reduce(value, axis=None)) for end in (numpy.fmin, numpy.fmax)]
        if all(isfinite(end) for end in ends):
            told["range"] = ends
    if value.size <= 1_000:
        told["repr"], told["truncated"] = cut(repr(value), MOST_REPR)


def text_of(value: Any, kind: Any) -> tuple[str, bool]:
    """Return the `repr` of a value, and whether something was left out of it."""
    if kind is str or kind is bytes:
        return repr(value[:MOST_REPR]), len(value) > MOST_REPR
    if kind is int and value.bit_length() > MOST_BITS:
        return hex(value), False  # Python refuses to write it in tens
    if id(kind) not in BRACKETS:
        return repr(value), False
    try:
        text = short.repr(value)
    except ValueError:  # a number in it is as large
        text = collected(value, kind, DEPTH, [PARTS])[0]
    return text, "..." in text or "…" in text


def description(value: Any) -> dict[str, Any]:
    """Return a description of a value that is not JSON, or is too large."""
    kind = type(value)
    module, name = named(kind)
    shown = name if module in ("builtins", "__main__") else f"{module}.{name}"
    told: dict[str, Any] = {"status": "ok", "type": cut(shown, MOST_CELL)[0]}
    library, name = table_type(kind)
    if name == "DataFrame":
        describe_table(value, library == "pandas", told)
    elif name == "ndarray":
        describe_array(value, told)
    else:
        if (library, name) == ("pandas", "Series"):
            told["shape"], told["dtype"] = [len(value)], str(value.dtype)
        text, told["truncated"] = text_of(value, kind)
        told["repr"], is_cut = cut(text, MOST_REPR)
        told["truncated"] |= is_cut
    return told


def evaluated(value: Any, room: int) -> dict[str, Any]:
    """Return a value as JSON; if that is impossible, or there is no room, its description."""
    is_cut = False
    try:
        told = as_json(value)
        if len(dumps(told)) <= room:
            return told
        is_cut = True
    except (NoJSON, TooLarge) as error:
        is_cut = type(error) is TooLarge
    told = description(value)
    if is_cut:
        told["truncated"] = True
    if len(dumps(told)) > room:
        return {"status": "ok", "type": told["type"], "truncated": True}
    return told


def failed(error: BaseException) -> dict[str, Any]:
    """Return the description of an error. Its own `str` may fail too."""
    try:
        evalue = cut(str(error), 2_000)[0]
    except BaseException:
        evalue = ""
    return {"status": "error", "ename": cut(named(type(error))[1], MOST_CELL)[0], "evalue": evalue}


def evaluate(given: str) -> None:
    """Evaluate expressions in the user's namespace, and add the results to the reply.

    That runs the user's code: the expression itself, and then the `repr` of a value that is neither
    JSON nor of a well-known library. If that code fails, the error belongs to this one expression.
    An interrupt ends the evaluation of all remaining expressions.
    """
    shell = sys.modules["IPython"].get_ipython()
    told: dict[str, Any] = {}
    room = MOST_ALL
    for name, expression in loads(given).items():
        try:
            code = compile(expression.strip(), f"<value {name}>", "eval")
            value = eval(code, shell.user_global_ns, shell.user_ns)  # noqa: S307
            told[name] = evaluated(value, room)
        except KeyboardInterrupt as error:
            told[name] = failed(error)
            break
        except BaseException as error:
            told[name] = failed(error)
        room -= len(dumps(told[name]))
    tell(VALUES_SOURCE, values=dumps(told))


# -- questions by a comm ---------------------------------------------------------------------------


def is_shown(value: Any) -> bool:
    """Return whether a variable holds something of the user's, rather than an import."""
    kind = type(value)
    if kind is FunctionType:
        return bool(value.__module__ == "__main__")
    if flags_of(kind) & IS_A_CLASS:
        return bool(module_of(value) == "__main__")
    return kind is not ModuleType and kind is not type(len)


def variables(match: str, limit: int) -> Any:
    """Return the variables whose names contain `match`, and how many were left out."""
    found = [
        item for item in user_variables() or () if match in item[0].casefold() and is_shown(item[1])
    ]
    found.sort(key=lambda item: item[0])
    told = [[*described(name, value)[:5], *types_of(value)] for name, value in found[:limit]]
    return told, len(found[limit:])


def distributions() -> dict[str, tuple[str, str, Any]]:
    """Return name, version and distribution by normalized name.

    The name and the version are read from the head of the metadata. To parse all of it would take
    ten times as long.
    """
    from importlib import metadata

    found: dict[str, tuple[str, str, Any]] = {}
    for distribution in metadata.distributions():
        text = distribution.read_text("METADATA") or distribution.read_text("PKG-INFO") or ""
        head = dict.fromkeys(("Name", "Version"), "")
        for line in text.partition("\n\n")[0].splitlines():
            field, _, value = line.partition(":")
            if head.get(field) == "":
                head[field] = value.strip()
        key = re.sub(r"[-_.]+", "-", head["Name"]).lower()
        if key:  # of two, the one that is first on the path counts
            found.setdefault(key, (head["Name"], head["Version"], distribution))
    return found


def module_names(distribution: Any) -> set[str]:
    """Return the names under which a distribution can be imported."""
    told = distribution.read_text("top_level.txt")
    if told is not None:
        return set(told.split())
    names = set()
    for line in (distribution.read_text("RECORD") or "").splitlines():
        parts = line.partition(",")[0].split("/")
        name, _, suffix = parts[0].partition(".")
        is_module = len(parts) > 1 and not suffix
        is_module = is_module or suffix == "py" or suffix.endswith((".so", ".pyd"))
        if is_module and name.isidentifier() and not name.startswith("__"):
            names.add(name)
    return names


def packages(match: str, limit: int) -> Any:
    """Return the distributions whose names contain `match`, and how many were left out."""
    told = []
    for _, (name, version, distribution) in sorted(distributions().items()):
        names = sorted(module_names(distribution))
        if any(match in each.casefold() for each in (name, *names)):
            told.append([name, version, names])
    return told[:limit], len(told[limit:])


def requirements() -> Iterator[str]:
    """Yield what is installed, as lines of requirements."""
    for key, (_, version, distribution) in sorted(distributions().items()):
        line = f"{key}=={version}" if version else key
        try:
            told = loads(distribution.read_text("direct_url.json") or "")
            vcs = told.get("vcs_info")
            url = f"{vcs['vcs']}+{told['url']}@{vcs['commit_id']}" if vcs else told["url"]
            yield f"{key} @ {url}"
        except (ValueError, LookupError):  # it comes from an index, as most do
            yield line


def environment() -> Any:
    """Return the interpreter, the platform, and what is installed."""
    import platform

    system = platform.uname()
    return {
        "language": "python",
        "version": platform.python_version(),
        "implementation": platform.python_implementation(),
        "interpreter": sys.executable,
        "platform": f"{system.system} {system.release} {system.machine}",
        "packages": list(requirements()),
    }


QUESTIONS: dict[str, Any] = {
    "variables": variables,
    "packages": packages,
    "environment": environment,
}


def opened(comm: Any, message: Any) -> None:
    """Answer the question that a comm was opened with, and forget the comm.

    Meanwhile, the output of other threads still belongs to the same cell as before.
    """
    shell = sys.modules["IPython"].get_ipython()
    asked = message["content"]["data"]
    if asked["behind"]["msg_id"]:
        shell.set_parent({"header": asked["behind"]})
    kernel = shell.kernel
    # As if the other side had closed it: at its end a comm sends a `comm_close` to all frontends.
    kernel.comm_manager.comm_close(None, None, {"content": {"comm_id": comm.comm_id}})
    try:
        answer = {"told": dumps(QUESTIONS[asked["question"]](**asked["given"]))}
    except Exception as error:
        answer = {"ename": type(error).__name__, "evalue": str(error)[:1000]}
    kernel.send_response(kernel.iopub_socket, ANSWER, answer)


def register() -> None:
    """Let this code stay in the kernel, as the target of comms of our name."""
    vars(opened).update(look=look, evaluate=evaluate)
    kernel = sys.modules["IPython"].get_ipython().kernel
    kernel.comm_manager.register_target(TARGET, opened)
