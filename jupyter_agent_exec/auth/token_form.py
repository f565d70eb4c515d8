"""The form that gives an agent a token, wherever a person sees it, and tokens in words.

A person fills in the same fields on the page of their tokens, and where a program signs in: at
their own server, and at a hub's service.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from typing import Final, NamedTuple

import msgspec

from ..errors import AgentExecError, InvalidRequest
from ..models import ApprovalPolicy, Caps, MintToken, SetPolicy, Token
from ..text.lookalikes import exact
from .scopes import plain_path
from .validation import read_value

SCRATCH: Final = {"exec:scratch": "Run code in separate kernels, apart from your notebooks"}
MORE: Final = {
    "files": "Read and write files in the folders where it works",
    "undo": "Undo what it ran itself, where you turned undo on",
    "history:read:all": "Read the history of all agents",
}
PLAIN: Final = {**SCRATCH, **MORE, "history:read": "Read its own history"}
RIGHTS: Final = {
    "look": "Look: read cells and variables, try code that can change nothing",
    "exec edit": "Run code and change cells",
    "exec": "Run code",
    "edit": "Change cells and run them",
    "read": "Read",
}
"""What an agent may do in notebooks, by the first words of its scopes."""
WORK: Final = ("exec", "edit")
"""What an agent may do in a notebook that the person ticks."""
MAX_NOTEBOOKS: Final = 8
"""How many notebooks the form offers."""
APPROVALS: Final = {
    "": "Server default",
    "first": "Once for each agent, until the kernel restarts",
    "always": "Every execution",
    "none": "Nothing",
}
EDITS: Final = {"": "Server default", "propose": "Propose changes", "apply": "Change cells at once"}
POLICIES: Final = {
    "notebook": "Code in notebooks",
    "kernel": "Code in other kernels that run",
    "scratch": "Code in separate kernels",
    "edits": "Edits of notebooks",
}
"""What the form of the policy calls its fields."""
LIFETIMES: Final = {
    3600: "1 hour",
    28_800: "8 hours",
    86_400: "1 day",
    604_800: "7 days",
    2_592_000: "30 days",
}
"""Seconds for which a token can be valid, and what they are called."""


CAPS: Final = {
    "executions_per_minute": "Executions per minute",
    "concurrent_executions": "Executions that wait or run at once",
    "kernels": "Sessions open at once",
    "wall_seconds": "Time for an execution, in seconds",
    "output_bytes": "Output kept for a cell, in bytes",
}
"""The limits that the form offers, and what they are called."""
_CAPS_SCHEMA = msgspec.json.schema_components([Caps])[1]["Caps"]["properties"]
BOUNDS: Final = {name: _CAPS_SCHEMA[name]["anyOf"][0] for name in CAPS}
"""For each limit, a JSON schema with the smallest and the largest number, if it has them."""
TITLES: Final = {
    "label": "Name",
    "scopes": "What it may do",
    "expires_in": "How long",
    "approval": "What needs your approval before it runs",
    "edits": "Edits of notebooks",
    **{f"caps.{name}": title for name, title in CAPS.items()},
}
"""What the form calls the fields of `MintToken`."""

Values = Mapping[str, Sequence[str]]
"""The values of a form's fields."""


@dataclass(frozen=True, kw_only=True)
class TokenForm:
    """The form, as a person sees it."""

    given: Values
    """What they filled in, or what it suggests."""
    max_lifetime: float
    """The longest lifetime of a token, in seconds."""
    passphrase: bool
    """Whether the server asks for its passphrase."""
    policy: ApprovalPolicy | None = None
    """The server's default; None if it is not known."""
    notebooks: Sequence[str] = ()
    """Paths of notebooks to tick."""
    has_focus: bool = False
    """Whether the keyboard starts in the form. Not where a program asks: the person reads first."""
    error: AgentExecError | None = None
    """What is wrong with what they filled in."""

    scratch = SCRATCH
    more = MORE
    rights = RIGHTS
    caps = CAPS
    bounds = BOUNDS
    titles = TITLES

    @property
    def work(self) -> str:
        """What the agent may do in a notebook that is ticked."""
        mode = None if self.policy is None else self.policy.notebook
        asks = {"first": " (you approve the first time)", "always": " (you approve each time)"}
        return f"run code and change cells{asks.get(mode or '', '')}"

    def values(self, field: str) -> Sequence[str]:
        """Return the values of a field; an empty one if there are none."""
        kind = field.removeprefix("policy.")
        default = "" if kind == field else getattr(self.policy, kind)
        return self.given.get(field) or [default]

    @property
    def lifetimes(self) -> dict[str, str]:
        """The values of the field for the lifetime, and what they are called."""
        longest = self.max_lifetime
        offered = {str(each): text for each, text in LIFETIMES.items() if each <= longest}
        return offered or {str(int(longest)): f"{longest / 60:.0f} minutes"}

    @property
    def approvals(self) -> dict[str, str]:
        """The values of the field for approval, and what they are called."""
        if self.policy is None:
            return APPROVALS
        notebook, scratch = APPROVALS[self.policy.notebook], APPROVALS[self.policy.scratch]
        default = f"in notebooks: {_small(notebook)}; elsewhere: {_small(scratch)}"
        return APPROVALS | {"": f"Server default ({default})"}

    @property
    def edits(self) -> dict[str, str]:
        """The values of the field for edits, and what they are called."""
        default = None if self.policy is None else _small(EDITS[self.policy.edits])
        return EDITS if default is None else EDITS | {"": f"Server default ({default})"}

    @property
    def policies(self) -> list[tuple[str, str, dict[str, str]]]:
        """The fields of the policy: the name, title and options of each that can be changed."""
        forced = POLICIES.keys() if self.policy is None else self.policy.forced
        return [
            (f"policy.{kind}", title, {mode: text for mode, text in options.items() if mode})
            for kind, title in POLICIES.items()
            if kind not in forced
            for options in [EDITS if kind == "edits" else APPROVALS]
        ]

    @property
    def message(self) -> str:
        """What is wrong, beginning with the field's title."""
        if self.error is None:
            return ""
        field = self.error.detail.get("field")
        title = TITLES.get(str(field).partition("[")[0])
        message = self.error.message
        return message if title is None else f"{title}: {message.removeprefix(f'{field}: ')}"


def offered(*paths: str) -> list[str]:
    """Return those of some notebooks that the form offers, the first of them first.

    As a pattern, a name with an asterisk would match other notebooks too.
    """
    plain = [path for path in map(plain_path, paths) if path is not None and "*" not in path]
    return list(dict.fromkeys(plain))[:MAX_NOTEBOOKS]


def filled_in(arguments: Mapping[str, Sequence[bytes]]) -> Values:
    """Return the fields of a form that was sent."""
    return {
        name: [value.decode(errors="replace") for value in values]
        for name, values in arguments.items()
    }


def policy_in(value: Callable[[str, None], str | None]) -> SetPolicy:
    """Return the policy that a form describes; `value` returns the value of a field.

    Raises
    ------
    InvalidRequest
    """
    return read_value({kind: value(f"policy.{kind}", None) for kind in POLICIES}, SetPolicy)


def requested(values: Callable[[str], list[str]]) -> MintToken:
    """Return the token that a form describes.

    Parameters
    ----------
    values
        Returns the values of a field.

    Raises
    ------
    InvalidRequest
    """
    lines = [line.strip() for text in values("patterns") for line in text.splitlines()]
    rights = [right for field in values("rights") for right in field.split()]
    wanted = [*product(WORK, values("notebook")), *product(rights, lines)]
    notebooks = [f"{right}:notebook:{path}" for right, path in wanted if path]
    scopes = list(dict.fromkeys([*filter(None, values("scope")), *notebooks]))
    if not scopes:
        raise InvalidRequest("Choose what the agent may do.", field="scopes")
    caps = {name: _number("".join(values(f"caps.{name}"))) for name in CAPS}
    asked = {
        "label": "".join(values("label")).strip(),
        "scopes": scopes,
        "expires_in": _number("".join(values("expires_in"))),
        "approval": "".join(values("approval")) or None,
        "edits": "".join(values("edits")) or None,
        "caps": caps,
    }
    return read_value(asked, MintToken)


def _number(text: str) -> int | str | None:
    """Return a number; a text that is none is returned as it is, and None if it is empty."""
    text = text.strip()
    return int(text) if text.isdecimal() and len(text) < 16 else text or None


# -- tokens in words -------------------------------------------------------------------------------


class TokenRow(NamedTuple):
    """A token in the list of a person's tokens."""

    token: Token
    server: str | None = None
    """At a hub's service, the server's name, empty for the default one. None: this server."""

    @property
    def name(self) -> str:
        """The token's label."""
        return exact(self.token.label, isolated=True)

    @property
    def lines(self) -> list[str]:
        """What the token allows, and its limits."""
        token = self.token
        lines = [*map(scope_in_words, token.scopes)]
        if token.approval is not None:
            lines.append(f"Needs your approval: {_small(APPROVALS[token.approval])}")
        if token.edits is not None:
            lines.append(f"Edits of notebooks: {_small(EDITS[token.edits])}")
        for name, title in CAPS.items():
            if (limit := getattr(token.caps, name)) is not None:
                lines.append(f"{title}: at most {limit:,}")
        return lines

    @property
    def times(self) -> list[str]:
        """When the token ends or ended, was last used, and was created."""
        token = self.token
        times = {
            "active": f"Ends in {_apart(token.expires_at)} ({_moment(token.expires_at)})",
            "expired": f"Expired {_apart(token.expires_at)} ago",
            "revoked": f"Revoked {_apart(token.revoked_at or token.expires_at)} ago",
        }
        said = [times[token.status]]
        if self.server is None:
            used = token.last_used_at
            said.append("Never used" if used is None else f"Last used {_apart(used)} ago")
        return [*said, f"Created {_moment(token.created_at)}"]


def scope_in_words(scope: str) -> str:
    """Say what a scope allows."""
    if scope in PLAIN:
        return PLAIN[scope]
    right, _, rest = scope.partition(":notebook")
    pattern = rest.removeprefix(":")
    where = "all notebooks" if pattern in ("", "**") else exact(pattern, isolated=True)
    return f"{RIGHTS[right]}: {where}"


def _small(text: str) -> str:
    return text[0].lower() + text[1:]


def _moment(at: str) -> str:
    return f"{at[:16].replace('T', ' ')} UTC"


def _apart(at: str) -> str:
    """Say how long ago a time was, or how far away it is."""
    seconds = abs((datetime.now(UTC) - datetime.fromisoformat(at)).total_seconds())
    units = {"day": 86_400, "hour": 3600, "minute": 60}
    unit, size = next((each for each in units.items() if seconds >= 1.5 * each[1]), ("minute", 60))
    count = max(1, round(seconds / size))
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"
