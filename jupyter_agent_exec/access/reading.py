"""From what a request says to a model, or to an error that names the field. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from ..errors import InvalidRequest, PayloadTooLarge
from ..models import Request

R = TypeVar("R", bound=Request)

_PATH = re.compile(r" - at `\$\.?(?P<path>.*)`$")
_MEMBER = re.compile(r"(?:unknown|required) field `(?P<member>[^`]*)`")


def read_body(body: bytes, model: type[R], *, limit_bytes: int) -> R:
    """Decode a JSON body; an empty one stands for an object without members."""
    if len(body) > limit_bytes:
        raise PayloadTooLarge(
            f"The body has {len(body):,} bytes; {limit_bytes:,} are allowed.",
            limit_bytes=limit_bytes,
        )
    try:
        return msgspec.json.decode(body or b"{}", type=model)
    except msgspec.ValidationError as error:
        raise _invalid(error) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _malformed(body, error) from None


def read_query(arguments: Mapping[str, Sequence[bytes]], model: type[R]) -> R:
    """Convert a query; of an argument given twice the last counts."""
    try:
        said = {name: values[-1].decode() for name, values in arguments.items() if name != "token"}
        return msgspec.convert(said, type=model, strict=False)
    except msgspec.ValidationError as error:
        raise _invalid(error) from None
    except UnicodeDecodeError:
        raise InvalidRequest("The query is not UTF-8.", field=None) from None


def _invalid(error: msgspec.ValidationError) -> InvalidRequest:
    """Name the field; msgspec tells it only as the end of its sentence."""
    told = str(error)
    path = _PATH.search(told)
    member = _MEMBER.search(told)
    parts = [path["path"] if path else "", member["member"] if member else ""]
    field = ".".join(part for part in parts if part) or None
    what = told[: path.start()] if path else told
    return InvalidRequest(f"{field}: {what}" if field else what, field=field)


def _malformed(body: bytes, error: Exception) -> InvalidRequest:
    """Tell text that cannot be written as UTF-8 from what is no JSON at all."""
    try:
        said = json.loads(body)
    except ValueError:
        return InvalidRequest(f"The body is not JSON: {error}.", field=None)
    field = _without_utf8(said, "")
    if field is None:
        return InvalidRequest(f"The body is not strict JSON: {error}.", field=None)
    return InvalidRequest(f"{field}: holds a lone surrogate, which is not text.", field=field)


def _without_utf8(value: Any, at: str) -> str | None:
    """Find the first text that holds a lone surrogate."""
    if isinstance(value, str):
        return at if re.search(r"[\ud800-\udfff]", value) else None
    if isinstance(value, dict):
        members: Any = ((f"{at}.{name}".lstrip("."), item) for name, item in value.items())
    elif isinstance(value, list):
        members = ((f"{at}[{index}]", item) for index, item in enumerate(value))
    else:
        return None
    return next((found for name, item in members if (found := _without_utf8(item, name))), None)
