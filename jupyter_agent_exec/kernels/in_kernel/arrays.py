"""Reads types, arrays and tables of well-known libraries. Sent to kernels with `resident.py`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from types import ModuleType
from typing import Any

PREVIEW = 80
ITEMS = 40
"""The most items of a collection, or columns of a table, to read."""

SAMPLES = 128
WHOLE_BYTES = 8_192
"""An array of up to this many bytes is read whole; a larger one is sampled."""

COLUMNS = 100
NAME = 100

PLAIN = {id(kind) for kind in (int, float, bool, complex, str, bytes, type(None))}

TABLES = {
    "numpy": ("ndarray",),
    "pandas": ("DataFrame", "Series"),
    "polars": ("DataFrame", "Series"),
    "torch": ("Tensor",),
    "xarray": ("DataArray",),
}
NUMBERS = ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool")
"""Scalar types of NumPy, with a safe `repr`."""

module_of = vars(type)["__module__"].__get__
qualname_of = vars(type)["__qualname__"].__get__
mro_of = vars(type)["__mro__"].__get__


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
