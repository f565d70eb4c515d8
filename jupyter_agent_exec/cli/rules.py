"""`jupyter agent-exec rules`: which code would need approval in the mode `rules`, and why.

Nothing runs, and nothing changes. The kernels of the past are gone, so it takes each name that a
source sets for a new one, and each that the agent set before for the agent's own.
"""

from __future__ import annotations

from argparse import Namespace
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from ..client import AgentExecClient
from ..client.display import one_line
from ..code_rules.classifier import DEFAULT_ALLOWED, names_made_by, reasons_to_ask
from ..models import ApprovalReason, ScratchTarget, SearchHit
from ..types import RuleKind
from . import exit_codes
from .command_client import connected
from .console import Console
from .usage import read_source

NOT_A_GUARD: Final = "The rules are a convenience, not a guard: code that passes may still do harm."

HIT_CHARACTERS: Final = 500
"""Characters of a source in a search's answer."""


def rules(arguments: Namespace, console: Console) -> int:
    """Say which code would need approval: a source, or what the history holds."""
    if arguments.source is not None:
        source = read_source(arguments.source, is_code=arguments.code)
        reasons = reasons_to_ask(source, arguments.allow or DEFAULT_ALLOWED, outside={})
        if arguments.json:
            console.json({"asks": bool(reasons), "reasons": reasons})
        else:
            for reason in reasons:
                console.line(one_line(reason.sentence, 200))
            if not reasons:
                console.line("Needs no approval.")
            console.note(NOT_A_GUARD)
        return exit_codes.OK
    with connected(arguments, console) as client:
        allowed = arguments.allow or client.approvals().policy.allow
        hits = list(
            client.search(
                agent=arguments.agent,
                target=arguments.target,
                session_id=arguments.session,
                since=arguments.since,
                until=arguments.until,
                limit=arguments.limit,
            )
        )
        asking = _asking(client, hits, allowed)
    kinds = Counter(kind for _, found in asking for kind in {reason.kind for reason in found})
    if arguments.json:
        console.json(
            {
                "executions": len(hits),
                "asking": [
                    {"execution_id": hit.execution_id, "reasons": found} for hit, found in asking
                ],
                "kinds": kinds,
            }
        )
        return exit_codes.OK
    rows = [
        (hit.execution_id, str(reason.line), reason.kind, reason.text)
        for hit, found in asking
        for reason in found
    ]
    if rows:
        console.table(("EXECUTION", "LINE", "KIND", "WHY IT ASKS"), rows, 80)
    counts = ", ".join(f"{kind} {count}" for kind, count in kinds.most_common())
    of_which = f" ({counts})" if counts else ""
    console.line(f"{len(asking)} of {len(hits)} executions would ask{of_which}.")
    console.note(NOT_A_GUARD)
    return exit_codes.OK


def _asking(
    client: AgentExecClient, hits: Sequence[SearchHit], allowed: Iterable[RuleKind]
) -> list[tuple[SearchHit, list[ApprovalReason]]]:
    """Return the executions that would need approval, newest first, each with the reasons."""
    own: defaultdict[str, set[str]] = defaultdict(set)
    kinds: dict[str, list[RuleKind]] = {}
    found = []
    for hit in reversed(hits):  # the order in which they ran
        if hit.session_id not in kinds:
            is_scratch = isinstance(client.session(hit.session_id).info.target, ScratchTarget)
            own_kernel: list[RuleKind] = ["variables"] if is_scratch else []
            kinds[hit.session_id] = [*allowed, *own_kernel]
        source = hit.source
        if len(source) >= HIT_CHARACTERS:
            source = client.execution(hit.execution_id).execution.source
        made = own[hit.session_id]
        reasons = reasons_to_ask(source, kinds[hit.session_id], outside={}, own=made)
        if reasons:
            found.append((hit, reasons))
        made |= names_made_by(source)
    return found[::-1]
