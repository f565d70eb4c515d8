"""Converts requests to models, or to errors that name the field. Pure."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

import msgspec

from ..errors import InvalidRequest, PayloadTooLarge
from ..models import Request

R = TypeVar("R", bound=Request)

_PATH = re.compile(r" - at (?:`key` in )?`\$\.?(?P<path>.*?)(?:\[\.\.\.\])*`$")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_NAMES = re.compile(r"[^.\[\]]+")
_MAY_HOLD_NUL = frozenset(("source", "init_source", "code", "find", "value", "values"))
"""Fields with code, or with input for code. A NUL in another text breaks SQL over the index."""
MAX_DEPTH = 100
"""How deeply objects and lists of a body may be nested."""
MAX_BITS = 63
"""How large an integer may be. The index, and other programs' JSON, have no larger ones."""

_MEMBER = re.compile(r"(?:unknown|required) field `(?P<member>[^`]*)`")


class NoQuery(Request, frozen=True, kw_only=True):
    """The query of a route that reads none."""


def read_body(body: bytes, model: type[R], *, limit_bytes: int) -> R:
    """Decode a JSON body. An empty body is an object without members."""
    if len(body) > limit_bytes:
        raise PayloadTooLarge(
            f"The body has {len(body):,} bytes; {limit_bytes:,} are allowed.",
            limit_bytes=limit_bytes,
        )
    try:
        text = (body or b"{}").decode("utf-8", "surrogatepass")
        value = json.loads(text, object_pairs_hook=_each_once)
    except RecursionError:
        raise InvalidRequest(
            f"The body is nested more than {MAX_DEPTH} deep.", field=None
        ) from None
    except ValueError as error:
        raise InvalidRequest(f"The body is not JSON: {error}.", field=None) from None
    return read_value(value, model)


def read_query(arguments: Mapping[str, Sequence[bytes]], model: type[R]) -> R:
    """Convert a query. If an argument is given twice, the last one is used."""
    try:
        said = {name: values[-1].decode() for name, values in arguments.items() if name != "token"}
        return msgspec.convert(said, type=model, strict=False)
    except msgspec.ValidationError as error:
        raise _invalid(error) from None
    except UnicodeDecodeError:
        raise InvalidRequest("The query is not UTF-8.", field=None) from None


def read_value(value: Any, model: type[R]) -> R:
    """Convert a value of JSON, such as the arguments of a tool."""
    check_accepted(value)
    try:
        return msgspec.convert(value, type=model)
    except msgspec.ValidationError as error:
        raise _invalid(error) from None


def given(request: Request, *names: str) -> list[str]:
    """Return those of a request's fields that do not have their default."""
    defaults = _defaults(type(request))
    return [name for name in names if getattr(request, name) != defaults[name]]


def at_most_one(request: Request, *names: str) -> None:
    """Raise InvalidRequest if two of these fields are given, of which one would be ignored."""
    both = given(request, *names)[:2]
    if len(both) == 2:
        raise InvalidRequest(f"{both[1]}: not together with {both[0]}.", field=both[1])


@cache
def _defaults(model: type[Request]) -> dict[str, Any]:
    """Return the default of each field that has one, and None for the others."""
    defaults = {}
    for field in msgspec.structs.fields(model):
        made = None if field.default_factory is msgspec.NODEFAULT else field.default_factory()
        defaults[field.name] = made if field.default is msgspec.NODEFAULT else field.default
    return defaults


def check_accepted(value: Any, at: str = "", depth: int = 0) -> None:
    """Raise InvalidRequest that names the field with something that is never accepted.

    Parameters
    ----------
    at
        The field of the value.
    depth
        How deeply it is nested.
    """
    what = ""
    if depth > MAX_DEPTH:
        at, what = at.partition("[")[0], f"is nested more than {MAX_DEPTH} deep."
    elif isinstance(value, str) and _SURROGATE.search(value):
        what = "contains a lone surrogate, which is not text."
    elif isinstance(value, str) and "\0" in value and _MAY_HOLD_NUL.isdisjoint(_NAMES.findall(at)):
        what = "contains a NUL character."
    elif isinstance(value, float) and not math.isfinite(value):
        what = "is not a finite number."
    elif isinstance(value, int) and value.bit_length() > MAX_BITS:
        what = f"has more than {MAX_BITS} bits."
    elif isinstance(value, dict) and any(_SURROGATE.search(name) for name in value):
        what = "has a member whose name contains a lone surrogate, which is not text."
    if what:
        raise InvalidRequest(f"{at}: {what}" if at else what, field=at or None)
    if isinstance(value, dict):
        for name, item in value.items():
            check_accepted(item, f"{at}.{name}".lstrip("."), depth + 1)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            check_accepted(item, f"{at}[{index}]", depth + 1)


def _each_once(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in members:
        if name in found:
            raise InvalidRequest(f"{name}: is given twice.", field=name)
        found[name] = value
    return found


def _invalid(error: msgspec.ValidationError) -> InvalidRequest:
    """Return a sentence that starts with the field; msgspec names the field at the end."""
    message = str(error)
    path = _PATH.search(message)
    member = _MEMBER.search(message)
    parts = [path["path"] if path else "", member["member"] if member else ""]
    field = ".".join(part for part in parts if part) or None
    what = message[: path.start()] if path else message
    return InvalidRequest(f"{field}: {what}" if field else what, field=field)
