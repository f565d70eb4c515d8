"""Code that is sent to an IPython kernel to evaluate expressions. The kernel never imports it.

It is sent together with `variable_listing`, and is gone after its answer. To evaluate an expression
is to run the user's code: the expression itself, and then the `repr` of a value that is neither
JSON nor of a well-known library. If that code fails, the error belongs to this one expression. An
interrupt ends the evaluation of all remaining expressions.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from json import dumps, loads
from math import isfinite
from reprlib import Repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .variable_listing import (
        BRACKETS,
        DEPTH,
        NUMBERS,
        PARTS,
        PLAIN,
        collected,
        is_of,
        named,
    )

MOST_EACH = 1_000_000
"""Characters of one value as JSON."""
MOST_ALL = 1_000_000
MOST_REPR = 10_000
MOST_DEPTH = 40
MOST_NODES = 500_000
"""The most values to read within one value."""
MOST_BITS = 10_000
ROWS = 10
COLUMNS = 100
MOST_CELL = 200
RANGE_ITEMS = 10_000_000
"""An array with more is not searched for its range."""

short = Repr()
short.maxlevel = 6
short.maxdict = short.maxlist = short.maxtuple = short.maxset = short.maxfrozenset = 100
short.maxstring = short.maxlong = short.maxother = 2_000


class NoJSON(Exception):
    """A value is not JSON."""


class TooLarge(Exception):
    """A value is too large to be returned whole."""


def number(value: Any, kind: Any) -> Any:
    """Return a NumPy number as Python's own; raise NoJSON if it is not a number."""
    module, name = named(kind)
    if module == "numpy" and name in NUMBERS and is_of("numpy", name, kind):
        return value.item()
    raise NoJSON


def check(value: Any, depth: int, room: list[int]) -> None:
    """Raise NoJSON unless a value is exactly JSON; raise TooLarge if it is too large."""
    kind = type(value)
    room[0] -= 1
    if room[0] < 0 or depth > MOST_DEPTH:
        raise TooLarge
    if kind is str:
        room[1] -= len(value)
        if room[1] < 0:
            raise TooLarge
        try:
            value.encode()
        except UnicodeError:
            raise NoJSON from None
    elif kind is float:
        if not isfinite(value):
            raise NoJSON
    elif kind is int:
        if not -(1 << 63) <= value < 1 << 64:
            raise NoJSON  # readers of the JSON would make it a float
    elif kind is list:
        for item in value:
            check(item, depth + 1, room)
    elif kind is dict:
        for key, item in value.items():
            if type(key) is not str:
                raise NoJSON
            check(key, depth + 1, room)
            check(item, depth + 1, room)
    elif value is not None and kind is not bool:
        raise NoJSON


def as_json(value: Any) -> Any:
    """Return a value as JSON; raise NoJSON or TooLarge otherwise."""
    check(value, 0, [MOST_NODES, MOST_EACH])
    if len(dumps(value, ensure_ascii=False).encode()) > MOST_EACH:
        raise TooLarge
    return value


def cell(value: Any) -> Any:
    """Return the value of a table's cell."""
    kind = type(value)
    with suppress(NoJSON):
        value = number(value, kind)
    if type(value) is float and not isfinite(value):
        return None
    if type(value) is str:
        return cut(value, MOST_CELL)[0]
    try:
        check(value, MOST_DEPTH, [1, MOST_CELL])
    except (NoJSON, TooLarge):
        return cut(str(value), MOST_CELL)[0]
    return value if id(type(value)) in PLAIN else str(value)


def printable(text: str) -> str:
    """Return text without characters that cannot be encoded as UTF-8."""
    return text.encode("utf-8", "replace").decode()


def cut(text: Any, most: int) -> tuple[str, bool]:
    """Return the start of a text, and whether something was cut off."""
    text = str.__str__(text)
    if len(text) > most:
        return printable(text[: most - 1] + "…"), True
    return printable(text), False


def labels(names: Any) -> list[str]:
    """Return the names of columns, each of them once."""
    told: list[str] = []
    for name in names:
        label = cut(name if type(name) is str else str(name), MOST_CELL)[0]
        known, n = label, 1
        while label in told:
            label, n = f"{known}.{n}", n + 1
        told.append(label)
    return told


def frame(value: Any, library: str, told: dict[str, Any]) -> None:
    """Describe a table of pandas or polars."""
    rows, columns = value.shape
    told["shape"] = [int(rows), int(columns)]
    told["truncated"] = columns > COLUMNS
    if library == "pandas":
        part = value.iloc[:ROWS, :COLUMNS]
        dtypes = list(part.dtypes)
        lists = [part.iloc[:, n].tolist() for n in range(part.shape[1])]
        names = labels(part.columns)
    else:
        part = value[:ROWS, :COLUMNS]
        dtypes = list(part.dtypes)
        lists = [series.to_list() for series in part.get_columns()]
        names = labels(part.columns)
    told["dtypes"] = {name: str(dtype) for name, dtype in zip(names, dtypes)}  # noqa: B905
    if library == "pandas" and named(type(value.index))[1] != "RangeIndex":
        told["index"] = [cut(str(label), MOST_CELL)[0] for label in part.index]
    told["head"] = [
        {name: cell(column[row]) for name, column in zip(names, lists)}  # noqa: B905
        for row in range(min(ROWS, int(rows)))
    ]


def array(value: Any, told: dict[str, Any]) -> None:
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


def described(value: Any, kind: Any) -> dict[str, Any]:
    """Return a description of a value that is not JSON, or is too large."""
    module, name = named(kind)
    shown = name if module in ("builtins", "__main__") else f"{module}.{name}"
    told: dict[str, Any] = {"status": "ok", "type": cut(shown, MOST_CELL)[0]}
    library = module.partition(".")[0]
    if library in ("pandas", "polars") and name == "DataFrame" and is_of(library, name, kind):
        frame(value, library, told)
    elif library == "numpy" and name == "ndarray" and is_of(library, name, kind):
        array(value, told)
    else:
        if library == "pandas" and name == "Series" and is_of(library, name, kind):
            told["shape"], told["dtype"] = [len(value)], str(value.dtype)
        text, told["truncated"] = text_of(value, kind)
        told["repr"], is_cut = cut(text, MOST_REPR)
        told["truncated"] |= is_cut
    return told


def looked_at(value: Any) -> dict[str, Any]:
    """Return a value as JSON; if that is impossible, return its description."""
    kind = type(value)
    try:
        try:
            return {"status": "ok", "json": as_json(number(value, kind)), "type": named(kind)[1]}
        except NoJSON:
            return {"status": "ok", "json": as_json(value)}
    except NoJSON:
        return described(value, kind)
    except TooLarge:
        return {**described(value, kind), "truncated": True}


def failed(error: BaseException) -> dict[str, Any]:
    """Return the description of an error. Its own `str` may fail too."""
    try:
        evalue = cut(str(error), 2_000)[0]
    except BaseException:
        evalue = ""
    return {"status": "error", "ename": cut(named(type(error))[1], MOST_CELL)[0], "evalue": evalue}


def evaluate(given: str) -> None:
    """Evaluate expressions in the user's namespace, and add the results to the reply."""
    shell = sys.modules["IPython"].get_ipython()
    told: dict[str, Any] = {}
    room = MOST_ALL
    for name, expression in loads(given).items():
        try:
            code = compile(expression.strip(), f"<value {name}>", "eval")
            found = eval(code, shell.user_global_ns, shell.user_ns)  # noqa: S307
            value = looked_at(found)
            size = len(dumps(value))
            if size > room and "json" in value:
                value = {**described(found, type(found)), "truncated": True}
                size = len(dumps(value))
            if size > room:
                value = {"status": "ok", "type": value.get("type"), "truncated": True}
                size = 200
        except KeyboardInterrupt as error:
            told[name] = failed(error)
            break
        except BaseException as error:
            value = failed(error)
            size = len(value["evalue"]) + 200
        room -= size
        told[name] = value
    shell.payload_manager.write_payload({"source": "agent_exec_values", "values": dumps(told)})
