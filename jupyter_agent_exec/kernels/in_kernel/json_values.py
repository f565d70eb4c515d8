"""Evaluates expressions, and tells their values as JSON or describes them.

Sent to kernels with `resident.py`.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from json import dumps, loads
from math import isfinite
from reprlib import Repr
from typing import Any

from .arrays import COLUMNS, PLAIN, cut, is_number, named, table_type
from .namespace import BRACKETS, DEPTH, PARTS, TooLarge, collected, tell

VALUES_SOURCE = "agent_exec_values"
"""Source name of the payload in a reply."""

MOST_EACH = MOST_ALL = 1_000_000
"""Characters of one value as JSON, and of all values."""
MOST_REPR = 10_000
MOST_DEPTH = 40
MOST_NODES = 500_000
"""The most values to read within one value."""
MOST_BITS = 10_000
ROWS = 10

MOST_CELL = 200
RANGE_ITEMS = 10_000_000
"""An array with more is not searched for its range."""

short = Repr()
short.maxlevel = 6
short.maxdict = short.maxlist = short.maxtuple = short.maxset = short.maxfrozenset = 100
short.maxstring = short.maxlong = short.maxother = 2_000


class NoJSON(Exception):
    """A value is not JSON."""


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
