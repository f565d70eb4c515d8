"""What has arrived at a far side, as a witness of the chains that are here."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from ..journal.proofs import Claim
from ..journal.verify import Outcome, ReadChain, Report
from .archive import Archive


def witnessed(archive: Archive, place: str, report: Report) -> list[Claim]:
    """Return how far each chain of a report is as it has arrived, or where it differs first.

    Parameters
    ----------
    archive
        What has arrived.
    place
        What names it in messages.
    report
        Gets a finding if a ledger of the same server is not here, or nothing of it has arrived.
    """
    arrived = set(archive.names())
    chains = {chain.name: chain for chain in report.chains.values()}
    servers: set[str] = set()
    claims: list[Claim] = []
    for name in sorted(chains.keys() & arrived):
        journal = archive.journal(name)
        servers.add(journal.server)
        there: dict[int, set[str]] = {}
        for line in journal.lines:
            there.setdefault(line.n, set()).add(line.hash)
        if there:
            claims.append(_claim(chains[name], there, place))
    if not claims:
        report.add(Outcome.MISSING, Path(place), None, "The witness has nothing of this.")
    _find_ledgers(archive, arrived - chains.keys(), servers, report)
    return claims


def _claim(chain: ReadChain, there: dict[int, set[str]], place: str) -> Claim:
    """Return what a witness says of the first entry that differs, or of the last that it has."""
    n = next((n for n in sorted(there) if chain.hash(n) not in there[n]), max(there))
    head = chain.hash(n) if chain.hash(n) in there[n] else min(there[n])
    return Claim("witnessed", place, chain.name, n + 1, head, chain.time(n))


def _find_ledgers(
    archive: Archive, names: Collection[str], servers: Collection[str], report: Report
) -> None:
    """Report the ledgers of the same servers that have arrived and are not here."""
    if not any(chain.ledger for chain in report.chains.values()):
        return  # a journal alone
    for name in sorted(names):
        if name.startswith("ledger-") and archive.journal(name).server in servers:
            message = "The witness has this ledger of the same server; it is not here."
            report.add(Outcome.MISSING, Path(name), None, message)
