"""The configuration of what is redacted, and the check of an operator's own patterns."""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

import regex
from traitlets import Bool, Bunch, Dict, HasTraits, List, TraitError, Unicode, validate

from .redaction import MARK, Redactor, Rule, mark

SHORTEST_VALUE: Final = 6

CREDENTIALS: Final[Mapping[str, str]] = {
    "AWS access key": r"(?:AKIA|ASIA)[0-9A-Z]{16}",
    "AWS secret key": r"aws_secret_access_key['\"]?\s{0,9}[=:]\s{0,9}['\"]?[\w/+]{40}",
    "GitHub token": r"gh[opsur]_\w{36,255}|github_pat_\w{22,255}",
    "GitLab token": r"glpat-[\w-]{20,200}",
    "Google API key": r"AIza[\w-]{35}",
    "Hugging Face token": r"hf_[A-Za-z0-9]{30,100}",
    "JSON web token": r"eyJ[\w-]{10,4000}\.eyJ[\w-]{10,8000}\.[\w-]{20,2000}",
    "npm token": r"npm_[A-Za-z0-9]{36}",
    "password in an address": r"://[^\s:@/'\"]{1,200}:[^\s:@/'\"]{1,200}@",
    "private key": r"-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----[^-]{1,12000}-----END "
    r"[A-Z ]{0,20}PRIVATE KEY-----",
    "PyPI token": r"pypi-[\w-]{50,300}",
    "secret API key": r"sk-[\w-]{20,300}",
    "Slack token": r"xox[abeoprs]-[\w-]{10,250}",
    "Stripe key": r"[rs]k_(?:live|test)_\w{16,200}",
}
"""Common credentials that can be told by their form."""


class RedactionTraits(HasTraits):
    """What is replaced before it is recorded, answered or shown."""

    redact_env = List(
        Unicode(),
        config=True,
        help="""Names of environment variables. Their values, as they are when the server starts,
        are replaced by `[redacted: NAME]` in what is recorded, answered and shown of agents' code
        and its outputs. Agent tokens are always replaced. Default: none.""",
    )
    redact_patterns = Dict(
        Unicode(),
        config=True,
        help="""Regular expressions of your own by name, such as
        `{"customer number": r"KD-\\d{8}"}`. What matches is replaced by `[redacted: NAME]`, like
        the values of `redact_env`. Each repeat needs a bound, such as `{1,200}`, and none may be
        within another. Default: none.""",
    )
    redact_credentials = Bool(
        False,
        config=True,
        help="""Whether common credentials are replaced too, as far as their form tells them: keys
        of AWS, Google and Stripe, tokens of GitHub, GitLab, Hugging Face, npm, PyPI and Slack, keys
        that begin with `sk-`, JSON web tokens, private keys, passwords in addresses.""",
    )

    @validate("redact_env")
    def _check_redact_env(self, proposal: Bunch) -> list[str]:
        for name in proposal.value:
            if 0 < len(os.environ.get(name, "")) < SHORTEST_VALUE:
                raise TraitError(
                    f"redact_env: the value of {name} has less than {SHORTEST_VALUE} characters; "
                    "other texts would contain it too."
                )
        return list(proposal.value)

    @validate("redact_patterns")
    def _check_redact_patterns(self, proposal: Bunch) -> dict[str, str]:
        for name, pattern in proposal.value.items():
            if (why := _refusal(pattern)) is not None:
                raise TraitError(f"redact_patterns: {name!r} {why}")
            if not MARK.fullmatch(mark(name)):
                raise TraitError(f"redact_patterns: {name!r} cannot be a name: no ']', one line.")
        return dict(proposal.value)

    def redactor(self) -> Redactor:
        """Return what replaces secrets, by the configuration."""
        rules = [
            Rule(name, _value_pattern(value))
            for name in self.redact_env
            if (value := os.environ.get(name))
        ]
        rules += [Rule(name, regex.compile(each)) for name, each in self.redact_patterns.items()]
        if self.redact_credentials:
            rules += [
                Rule(name, regex.compile(each), public=3) for name, each in CREDENTIALS.items()
            ]
        return Redactor(rules)


def _value_pattern(value: str) -> regex.Pattern[str]:
    """Return a pattern for a value: as it is, and as JSON, Python, HTML and addresses write it."""
    forms = {value, repr(value)[1:-1], html.escape(value), html.escape(value, quote=False)}
    forms |= {quote(value, safe=""), json.dumps(value)[1:-1]}
    forms.add(json.dumps(value, ensure_ascii=False)[1:-1])
    return regex.compile("|".join(map(regex.escape, sorted(forms, key=len, reverse=True))))


_ATOM: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_GROUP: Final = re.compile(r"\((?:\?[^:()]*:|\?P<\w+>|\?<?[=!])?([^()]*)\)(\{?)")


def _refusal(pattern: str) -> str | None:
    """Return why a pattern of the operator's is refused; None if it is not."""
    try:
        compiled = regex.compile(pattern)
    except (regex.error, RecursionError) as error:
        return f"is not a regular expression: {error}."
    if compiled.search("") is not None:
        return "matches nothing at all, which is everywhere."
    plain = _ATOM.sub("x", pattern)
    if re.search(r"[*+]|\{\d*,\}", plain):
        return "has a repeat without a bound; write {0,200} for * and {1,200} for +."
    while (group := _GROUP.search(plain)) is not None:
        inner, repeat = group[1], group[2]
        if repeat and "{" in inner:
            return "has a repeat within a repeat, which may take for ever; write it without."
        kept = "x{1}" if "{" in inner and not repeat else "x"
        plain = plain[: group.start()] + kept + repeat + plain[group.end() :]
    return None
