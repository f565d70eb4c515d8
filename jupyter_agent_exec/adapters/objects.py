"""Transfers Python objects from a kernel as tagged JSON, not pickle, which could run code.

JSON types stay as they are. Tuples, sets, dicts with keys that are not strings, numbers that JSON
lacks, bytes, dates, and NumPy and pandas objects become ``{"$": <type>, …}``. Any other object
within a collection becomes its `repr`.
"""

from __future__ import annotations

import base64
import datetime
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final
from uuid import UUID

import msgspec

from ..models import Value

_ENCODER: Final = """
import base64, datetime, decimal, fractions, math, sys, uuid

def items(values, depth):
    return [encoded(each, depth) for each in values]

def array(value, depth):
    if value.dtype.kind in "biufcmMSU":
        data = base64.b64encode(value.tobytes()).decode()
        return {"$": "ndarray", "dtype": value.dtype.str, "shape": list(value.shape), "data": data}
    return {"$": "ndarray", "shape": list(value.shape), "items": items(value.ravel(), depth)}

def index(value, pandas, depth):
    told = {"$": "Index", "names": items(value.names, depth)}
    if type(value) is pandas.RangeIndex:
        return {**told, "range": [value.start, value.stop, value.step]}
    if isinstance(value, pandas.MultiIndex):
        return {**told, "tuples": items(value.tolist(), depth)}
    return {**told, "values": column(value, depth)}

def column(value, depth):
    dtype = value.dtype
    if type(dtype).__module__.startswith("numpy"):
        return array(value.to_numpy(), depth)
    return {"$": "column", "dtype": str(dtype), "items": items(value.tolist(), depth)}

def encoded(value, depth=0):
    kind = type(value)
    if value is None or kind is bool:
        return value
    if kind is str:
        value.encode()  # a lone surrogate is told by its repr
        return value
    if depth > 30:
        raise ValueError("nested too deeply")
    depth += 1
    if kind is int:
        return value if -(1 << 63) <= value < 1 << 63 else {"$": "int", "hex": hex(value)}
    if kind is float:
        return value if math.isfinite(value) else {"$": "float", "text": repr(value)}
    if kind is complex:
        return {"$": "complex", "parts": items([value.real, value.imag], depth)}
    if isinstance(value, dict):
        pairs = list(dict.items(value))
        if all(type(key) is str and key != "$" for key, _ in pairs):
            return {key: encoded(each, depth) for key, each in pairs}
        return {"$": "dict", "items": [items(pair, depth) for pair in pairs]}
    if isinstance(value, list):
        return items(list.__iter__(value), depth)
    for name, each in ("tuple", tuple), ("set", set), ("frozenset", frozenset):
        if isinstance(value, each):
            return {"$": name, "items": items(each.__iter__(value), depth)}
    if kind in (bytes, bytearray):
        return {"$": kind.__name__, "data": base64.b64encode(value).decode()}
    numpy, pandas = sys.modules.get("numpy"), sys.modules.get("pandas")
    if pandas is not None:
        if value is pandas.NaT or value is pandas.NA:
            return {"$": "pandas", "name": "NaT" if value is pandas.NaT else "NA"}
        if isinstance(value, pandas.DataFrame):
            columns = [column(value.iloc[:, n], depth) for n in range(value.shape[1])]
            return {
                "$": "DataFrame",
                "names": index(value.columns, pandas, depth),
                "index": index(value.index, pandas, depth),
                "columns": columns,
            }
        if isinstance(value, pandas.Series):
            told = {"$": "Series", "name": encoded(value.name, depth)}
            told["index"] = index(value.index, pandas, depth)
            return {**told, "values": column(value, depth)}
        if isinstance(value, pandas.Index):
            return index(value, pandas, depth)
        if kind is pandas.Timestamp or kind is pandas.Timedelta:
            return {"$": kind.__name__, "text": value.isoformat()}
    if numpy is not None:
        if isinstance(value, numpy.ndarray) and value.dtype.names is None:
            return array(numpy.asarray(value), depth)
        if isinstance(value, numpy.generic):
            if value.dtype.kind in "mM":
                return {**array(numpy.asarray(value), depth), "scalar": True}
            plain = value.item()
            if type(plain) is not kind:
                return encoded(plain, depth)
    if kind in (datetime.datetime, datetime.date, datetime.time):
        return {"$": kind.__name__, "text": value.isoformat()}
    if kind is datetime.timedelta:
        return {"$": "timedelta", "parts": [value.days, value.seconds, value.microseconds]}
    if kind in (decimal.Decimal, fractions.Fraction, uuid.UUID):
        return {"$": kind.__name__, "text": str(value)}
    if depth == 1:
        raise ValueError("no data")
    return {"$": "repr", "text": repr(value)[:10000]}

def told(value):
    try:
        return {"data": encoded(value)}
    except Exception:
        return None  # it is described instead
"""


def expressions(variable: str) -> dict[str, str]:
    """Return the expressions to evaluate after code to get a variable's value; see `returned`."""
    got = f"globals().get({variable!r})"
    told = f"(lambda names: (exec({_ENCODER!r}, names), names['told'])[1])({{}})({got})"
    return {"object": told, "description": got}


def returned(values: Mapping[str, Value]) -> tuple[Any, bool]:
    """Return the value of a variable, and whether the value is incomplete.

    Returns
    -------
    The object. If it cannot be sent as data, its `repr` or another description. None if the
    variable does not exist.
    """
    told, described = values.get("object"), values.get("description")
    if told is not None and isinstance(told.json, dict):
        with suppress(Exception):  # code in the kernel may send anything
            return decoded(told.json["data"]), False
    if described is None or described.status == "error":
        return None, False
    if described.json is not msgspec.UNSET:
        return described.json, False
    if described.repr is not None:
        return described.repr, described.truncated
    fields = msgspec.to_builtins(described)
    return {name: each for name, each in fields.items() if name != "status"}, True


def decoded(data: Any) -> Any:
    """Return a decoded object. Without NumPy or pandas, their objects become lists and dicts."""
    if isinstance(data, list):
        return [decoded(each) for each in data]
    if not isinstance(data, dict):
        return data
    if "$" not in data:
        return {key: decoded(each) for key, each in data.items()}
    return _DECODERS[data["$"]](data)


def _array(data: dict[str, Any]) -> Any:
    try:
        import numpy as np
    except ImportError:
        return decoded(data["items"]) if "items" in data else data
    if "items" in data:
        made = np.empty(len(data["items"]), dtype=object)
        for position, each in enumerate(data["items"]):
            made[position] = decoded(each)
        return made.reshape(data["shape"])
    made = np.frombuffer(base64.b64decode(data["data"]), dtype=np.dtype(data["dtype"]))
    made = made.reshape(data["shape"]).copy()
    return made[()] if data.get("scalar") else made


def _column(data: dict[str, Any]) -> Any:
    if data["$"] == "ndarray":
        return _array(data)
    import pandas as pd

    items = decoded(data["items"])
    try:
        return pd.Series(items, dtype=data["dtype"]).array
    except (TypeError, ValueError):  # a dtype that this process lacks
        return pd.Series(items, dtype=object).array


def _index(data: dict[str, Any]) -> Any:
    import pandas as pd

    names = decoded(data["names"])
    if "range" in data:
        return pd.RangeIndex(*data["range"], name=names[0])
    if "tuples" in data:
        return pd.MultiIndex.from_tuples(decoded(data["tuples"]), names=names)
    return pd.Index(_column(data["values"]), name=names[0])


def _series(data: dict[str, Any]) -> Any:
    import pandas as pd

    values = _column(data["values"])
    return pd.Series(values, index=_index(data["index"]), name=decoded(data["name"]))


def _frame(data: dict[str, Any]) -> Any:
    import pandas as pd

    columns = dict(enumerate(map(_column, data["columns"])))
    frame = pd.DataFrame(columns, index=_index(data["index"]))
    frame.columns = _index(data["names"])
    return frame


def _of_pandas(data: dict[str, Any]) -> Any:
    try:
        import pandas as pd
    except ImportError:
        return None if data["$"] == "pandas" else data["text"]
    if data["$"] == "pandas":
        return pd.NaT if data["name"] == "NaT" else pd.NA
    return (pd.Timestamp if data["$"] == "Timestamp" else pd.Timedelta)(data["text"])


def _items(kind: Callable[[list[Any]], Any]) -> Callable[[dict[str, Any]], Any]:
    return lambda data: kind([decoded(each) for each in data["items"]])


def _text(kind: Callable[[str], Any]) -> Callable[[dict[str, Any]], Any]:
    return lambda data: kind(data["text"])


def _bytes(kind: Callable[[bytes], Any]) -> Callable[[dict[str, Any]], Any]:
    return lambda data: kind(base64.b64decode(data["data"]))


_DECODERS: Final[dict[str, Callable[[dict[str, Any]], Any]]] = {
    "int": lambda data: int(data["hex"], 16),
    "float": lambda data: {"inf": math.inf, "-inf": -math.inf}.get(data["text"], math.nan),
    "complex": lambda data: complex(*decoded(data["parts"])),
    "dict": lambda data: {decoded(key): decoded(each) for key, each in data["items"]},
    "tuple": _items(tuple),
    "set": _items(set),
    "frozenset": _items(frozenset),
    "bytes": _bytes(bytes),
    "bytearray": _bytes(bytearray),
    "datetime": _text(datetime.datetime.fromisoformat),
    "date": _text(datetime.date.fromisoformat),
    "time": _text(datetime.time.fromisoformat),
    "timedelta": lambda data: datetime.timedelta(*data["parts"]),
    "Decimal": _text(Decimal),
    "Fraction": _text(Fraction),
    "UUID": _text(UUID),
    "ndarray": _array,
    "Index": _index,
    "Series": _series,
    "DataFrame": _frame,
    "Timestamp": _of_pandas,
    "Timedelta": _of_pandas,
    "pandas": _of_pandas,
    "repr": _text(str),
}
