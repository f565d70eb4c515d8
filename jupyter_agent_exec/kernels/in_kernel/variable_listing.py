"""Code that is sent to an IPython kernel to list its variables. The kernel never imports it.

It runs in its own namespace, which ends with it. It must not run any code that a user or an agent
wrote. So it does not call `len` or `repr` of a value, and reads no `__class__` or other attribute
that a class could override. It reads only exact built-in types, by their own methods, and a few
types of well-known libraries. It compares values and types by identity, because a metaclass may
even define `==` and `hash`.

It reads private members of pandas, xarray and torch, because their public ones may call code of
others. `tests/kernels/test_variable_listing.py` fails when one of them is gone.

It is quick rather than thorough. It identifies a large value by identity, size and a sample, so it
may miss a change in the middle of the value.
"""

from __future__ import annotations

import sys
from itertools import islice
from json import dumps
from time import thread_time
from types import ModuleType
from typing import Any

MOST_NAMES = 1_000
MOST_CHARACTERS = 60_000
MOST_SECONDS = 0.001
"""Seconds of processor time, so that a busy machine does not change the result."""
PREVIEW = 80
ITEMS = 40
"""The most items of a collection to read."""
PARTS = 120
"""The most parts of a variable's value to read: the items of all its nested collections."""
DEPTH = 3
SAMPLES = 128
WHOLE_BYTES = 8_192
"""An array of up to this many bytes is read whole; a larger one is sampled."""

BRACKETS = {
    id(list): (list, "[", "]"),
    id(tuple): (tuple, "(", ")"),
    id(dict): (dict, "{", "}"),
    id(set): (set, "{", "}"),
    id(frozenset): (frozenset, "frozenset({", "})"),
}
PLAIN = {id(kind) for kind in (int, float, bool, complex, str, bytes, type(None))}
SIZED = ((1 << 25, list), (1 << 26, tuple), (1 << 27, bytes), (1 << 28, str), (1 << 29, dict))
"""Flags of the classes that inherit from these types, and with them their length."""
INDEXES = (
    "Index",
    "RangeIndex",
    "MultiIndex",
    "DatetimeIndex",
    "TimedeltaIndex",
    "PeriodIndex",
    "CategoricalIndex",
)
ARRAYS = {
    "StringArray": "_ndarray",
    "DatetimeArray": "_ndarray",
    "TimedeltaArray": "_ndarray",
    "PeriodArray": "_ndarray",
    "Categorical": "_codes",
    "IntegerArray": "_data",
    "FloatingArray": "_data",
    "BooleanArray": "_data",
    "ArrowStringArray": None,
    "ArrowExtensionArray": None,
}
"""Types of pandas, and the attribute that holds the NumPy array. The `__len__` of others may run
code of users."""
TABLES = {
    "numpy": ("ndarray",),
    "pandas": ("DataFrame", "Series", *INDEXES),
    "polars": ("DataFrame", "Series"),
    "torch": ("Tensor",),
    "xarray": ("DataArray",),
}
NUMBERS = ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool")
"""Scalar types of NumPy, with a safe `repr`."""

flags_of = vars(type)["__flags__"].__get__
module_of = vars(type)["__module__"].__get__
qualname_of = vars(type)["__qualname__"].__get__


def named(kind: Any) -> tuple[str, str]:
    """Return the module and the qualified name of a class, with any metaclass."""
    module, name = module_of(kind), qualname_of(kind)
    return (module if type(module) is str else "?"), (name if type(name) is str else "?")


def plain(value: Any, kind: Any) -> tuple[str | None, str]:
    """Return the preview and the fingerprint of a plain value."""
    if kind is str or kind is bytes:
        shown = repr(value[: PREVIEW + 1])
        return shown, shown if len(value) <= PREVIEW else f"{len(value)} {hashed(value)}"
    if kind is int and value.bit_length() > 400:
        return None, f"{value.bit_length()} {id(value)}"
    shown = repr(value)
    return shown, shown


def hashed(text: Any) -> int:
    """Return the fingerprint of a text: its hash, or its identity if it is very long."""
    return hash(text) if len(text) <= 50_000 else id(text)


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
        texts = [": ".join(pair) for pair in zip(texts[::2], texts[1::2], strict=False)]
    shown = ", ".join(texts)
    if room > 0 and len(value) > ITEMS:
        shown += ", …"
    if kind is tuple and len(value) == 1:
        shown += ","
    if not value and (kind is set or kind is frozenset):
        return f"{kind.__name__}()", "0"
    return f"{opening}{shown}{closing}", ",".join(known)


def sampled(array: Any, kind: Any) -> str:
    """Return the fingerprint of a NumPy array, from its memory, or from a part if it is large."""
    if array.base is not None and (type(array.base) is not kind or array.base.base is not None):
        return f"{id(array)}"  # it may lie on a disk
    if array.nbytes <= WHOLE_BYTES:
        return f"{array.dtype.str} {hash(array.tobytes())}"
    return f"{id(array)} {hash(array.flat[:: array.size // SAMPLES + 1].tobytes())}"


def is_of(library: str, name: str, kind: Any) -> bool:
    """Return whether a class is the one in its library, rather than one that claims its name."""
    module = sys.modules.get(library)
    return type(module) is ModuleType and vars(module).get(name) is kind


def frame(value: Any) -> tuple[Any, str]:
    """Return the shape and the fingerprint of a table or a series of pandas."""
    ndarray: Any = vars(sys.modules["numpy"])["ndarray"]
    manager = value._mgr
    parts: list[Any] = [id(axis) for axis in manager.axes]
    for block in islice(manager.blocks, ITEMS):
        values = block.values
        parts.append(sampled(values, ndarray) if type(values) is ndarray else id(values))
    sizes = [index_size(axis, ndarray) for axis in reversed(manager.axes)]
    return (None if None in sizes else sizes), f"{parts}"


def index_size(index: Any, ndarray: Any) -> int | None:
    """Return the length of an index of pandas; None unless all of it is pandas' own."""
    name = named(type(index))[1]
    if name not in INDEXES or not is_of("pandas", name, type(index)):
        return None
    if name == "RangeIndex":
        return len(index._range) if type(index._range) is range else None
    held = list.__getitem__(index._codes, 0) if name == "MultiIndex" else index._data
    array = named(type(held))[1]
    if array in ARRAYS and is_of("pandas.arrays", array, type(held)):
        where = ARRAYS[array]
        if where is None:
            return len(held)
        held = getattr(held, where)
    return len(held) if type(held) is ndarray else None


def table(value: Any, kind: Any, module: str, name: str) -> tuple[Any, str]:
    """Return the shape and the fingerprint of an array or a table of a well-known library."""
    root = module.partition(".")[0]
    if name not in TABLES.get(root, ()) or not is_of(root, name, kind):
        return None, ""
    if root == "pandas" and name in ("DataFrame", "Series"):
        return frame(value)
    if root == "pandas":
        size = index_size(value, vars(sys.modules["numpy"])["ndarray"])
        return (None if size is None else [size]), f"{id(value)}"
    shape: Any = kind.shape.__get__
    if root == "numpy":
        return shape(value), sampled(value, kind)
    if root == "torch":
        return shape(value), f"{id(value)} {value._version}"
    if root == "xarray":
        data = value._variable._data
        ndarray = vars(sys.modules["numpy"])["ndarray"]
        if type(data) is not ndarray:
            return None, f"{id(value)}"
        return ndarray.shape.__get__(data), f"{id(value)} {sampled(data, ndarray)}"
    return shape(value), f"{id(value)}"


def described(name: str, value: Any) -> list[Any]:
    """Return a variable's name, type, shape, length and preview, and its value's fingerprint."""
    kind = type(value)
    module, qualname = named(kind)
    type_name = qualname if module in ("builtins", "__main__") else f"{module}.{qualname}"
    type_name = type_name[:200].encode("utf-8", "replace").decode()
    shape, length, preview, known = None, None, None, f"{id(value)}"
    try:
        if id(kind) in PLAIN:
            preview, known = plain(value, kind)
        elif id(kind) in BRACKETS:
            preview, known = collected(value, kind, DEPTH, [PARTS])
        elif qualname in NUMBERS and module == "numpy" and is_of("numpy", qualname, kind):
            preview = known = repr(value)
        else:
            shape, by = table(value, kind, module, qualname)
            known = by or known
        if id(kind) in BRACKETS or kind is str or kind is bytes:
            length = len(value)
        elif shape is None:
            flags = flags_of(kind)
            for flag, base in SIZED:
                if flags & flag:
                    length = base.__len__(value)
    except Exception:  # another thread changes the value, or a library has another version
        shape, length, preview = None, None, None
    if preview is not None and len(preview) > PREVIEW:
        preview = preview[: PREVIEW - 1] + "…"
    if shape is not None:
        shape = [int(size) for size in shape]
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


def look() -> None:
    """Add the variables to the reply, newest first."""
    shell = sys.modules["IPython"].get_ipython()
    names = user_variables()
    if names is None:
        return
    begun = thread_time()
    variables: list[Any] = []
    room = MOST_CHARACTERS
    for name, value in reversed(names):
        if len(variables) == MOST_NAMES or room < 0 or thread_time() - begun > MOST_SECONDS:
            break
        variables.append(described(name[:200], value))
        room -= len(name) + 120 + len(variables[-1][1]) + len(variables[-1][4] or "")
    told = dumps([len(names), variables])
    shell.payload_manager.write_payload({"source": "agent_exec", "variables": told})
