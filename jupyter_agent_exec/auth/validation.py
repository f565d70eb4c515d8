"""Converts requests to models, or to errors that name the field. Pure."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
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

_TOKEN = re.compile(
    rb'"[^"\\]*(?:\\.[^"\\]*)*"?(?P<names>\s*:)?|(?P<open>[\[{])|(?P<close>[\]}])', re.DOTALL
)
"""Matches an unterminated text too, so that the search does not start again within it."""

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
    _check_depth(body)
    try:
        said = msgspec.json.decode(body or b"{}", type=model)
    except msgspec.ValidationError as error:
        raise _invalid(error) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _malformed(body, error) from None
    try:
        value = json.loads(body or b"{}", object_pairs_hook=_each_once)
    except ValueError as error:  # such as an integer with more digits than Python reads
        raise InvalidRequest(f"The body cannot be read: {error}.", field=None) from None
    if b"\\u0000" in body:
        check_accepted(value)
    return said


def read_query(arguments: Mapping[str, Sequence[bytes]], model: type[R]) -> R:
    """Convert a query. If an argument is given twice, the last one is used."""
    try:
        said = {name: values[-1].decode() for name, values in arguments.items() if name != "token"}
        return msgspec.convert(said, type=model, strict=False)
    except msgspec.ValidationError as error:
        raise _invalid(error) from None
    except UnicodeDecodeError:
        raise InvalidRequest("The query is not UTF-8.", field=None) from None


def read_arguments(arguments: Mapping[str, Any], model: type[R]) -> R:
    """Convert the JSON arguments of a tool."""
    check_accepted(dict(arguments))
    try:
        return msgspec.convert(arguments, type=model)
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


def check_accepted(value: Any) -> None:
    """Raise InvalidRequest that names the field with something that is never accepted."""
    found = _not_accepted(value, "")
    if found is not None:
        field, what = found
        raise InvalidRequest(f"{field}: {what}" if field else what, field=field or None)


def _check_depth(body: bytes) -> None:
    """Raise InvalidRequest that names the field in which a body is nested too deeply."""
    if body.count(b"[") + body.count(b"{") <= MAX_DEPTH:
        return
    depth = 0
    names = [""] * (MAX_DEPTH + 1)
    for token in _TOKEN.finditer(body):
        if token["names"] is not None:
            names[depth] = token[0][1:].partition(b'"')[0].decode(errors="replace")
        elif token["close"] is not None:
            depth = max(0, depth - 1)
        elif token["open"] is not None:
            depth += 1
            if depth > MAX_DEPTH:
                raise _too_deep(names)
            names[depth] = ""


def _too_deep(names: list[str]) -> InvalidRequest:
    path = names[1 : names.index("", 1)] if "" in names[1:] else names[1:]
    field = ".".join(path[:3]) or None
    where = f"{field}: is" if field else "The body is"
    return InvalidRequest(f"{where} nested more than {MAX_DEPTH} deep.", field=field)


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


def _malformed(body: bytes, error: Exception) -> InvalidRequest:
    """Return the error for a body: JSON that we do not accept, or no JSON at all."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return InvalidRequest(f"The body is not JSON: {error}.", field=None)
    try:
        check_accepted(value)
    except InvalidRequest as refusal:
        return refusal
    return InvalidRequest(f"The body is not strict JSON: {error}.", field=None)


def _not_accepted(value: Any, at: str, depth: int = 0) -> tuple[str, str] | None:
    """Describe the first lone surrogate, NUL, infinite number or too deep nesting; None if none."""
    if depth > MAX_DEPTH:
        return at.partition("[")[0], f"is nested more than {MAX_DEPTH} deep."
    if isinstance(value, str) and _SURROGATE.search(value):
        return at, "contains a lone surrogate, which is not text."
    if isinstance(value, str) and "\0" in value and _MAY_HOLD_NUL.isdisjoint(_NAMES.findall(at)):
        return at, "contains a NUL character."
    if isinstance(value, float) and not math.isfinite(value):
        return at, "is not a finite number."
    members: Iterable[tuple[str, Any]] = ()
    if isinstance(value, dict):
        if any(_SURROGATE.search(name) for name in value):
            return at, "has a member whose name contains a lone surrogate, which is not text."
        members = ((f"{at}.{name}".lstrip("."), item) for name, item in value.items())
    elif isinstance(value, list):
        members = ((f"{at}[{index}]", item) for index, item in enumerate(value))
    return next(
        (found for name, item in members if (found := _not_accepted(item, name, depth + 1))), None
    )
