"""Says against whom a record holds: who else says what its chains were, and up to which entry.

A hash chain shows that single entries are as they were written. Whoever can write all files can
write a whole history anew. So this compares the chains that `verify` has read with the signatures
of their heads, whose key the reader may know from elsewhere. Like `verify`, it shares with the code
that writes only the definition of what is signed.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from ..text.counts import counted
from .checked_ledgers import end_in
from .findings import Outcome, ReadChain, Report, shown, who
from .heads import (
    EXPORT,
    HEAD,
    PRIVATE_KEY,
    cell_digest,
    key_id,
    metadata_digest,
    signatures_path,
    signed_bytes,
)

_FIELDS: Final = ("format", "chain", "head", "at", "key", "public_key", "signature")


class Claim(NamedTuple):
    """A signature says that a chain had a head."""

    by: str
    """The id of the key."""
    chain: str
    length: int
    head: str
    at: str
    """When it was signed."""


@dataclass(kw_only=True, slots=True)
class HeldChain:
    """How far a chain holds."""

    name: str
    entries: int
    signed: Claim | None = None
    """The signature that goes furthest."""
    unheld_since: str | None = None
    """When the first entry was written that only the hash chain holds; None if there is none."""

    @property
    def held_entries(self) -> int:
        """How many entries a signature holds."""
        return 0 if self.signed is None else self.signed.length


@dataclass(kw_only=True, slots=True)
class Held:
    """Against whom a record holds."""

    chains: list[HeldChain] = field(default_factory=list)
    keys: dict[str, str] = field(default_factory=dict)
    """The keys that count, each with how it is known: `given`, `named` in a ledger that such a key
    signed, or only `found` in the record."""
    notes: list[str] = field(default_factory=list)
    """What else the reader has to know, in sentences."""

    def paragraph(self) -> str:
        """Return it in a few sentences."""
        if not any(chain.signed for chain in self.chains):
            chains_alone = (
                "Only hash chains hold it: they show whether single entries were changed, not "
                "whether somebody wrote the whole history anew."
            )
            return " ".join([chains_alone, *self.notes])
        return " ".join([self._signed(), *self._key_notes(), *self.notes, *self._unheld()])

    def _signed(self) -> str:
        claims = [chain.signed for chain in self.chains if chain.signed is not None]
        by = " and ".join(dict.fromkeys(f"key {short(claim.by)}" for claim in claims))
        last = max(claim.at for claim in claims)
        if len(self.chains) == 1:
            reached = f"until entry {claims[0].length - 1} of {self.chains[0].entries - 1}"
        else:
            ends = sum(1 for chain in self.chains if chain.held_entries == chain.entries)
            chains = counted(len(self.chains), "chain")
            reached = f"{len(claims)} of {chains}, {ends} of them to their ends"
        return f"Signed by {by}: {reached}; the last time at {last}."

    def _key_notes(self) -> list[str]:
        used = {chain.signed.by for chain in self.chains if chain.signed is not None}
        if any(self.keys.get(key) == "found" for key in used):
            return [
                "The key is known only from what was verified: whoever wrote it anew could sign it "
                "with another key. Give a key that you have from elsewhere with --key."
            ]
        return []

    def _unheld(self) -> list[str]:
        chains = [chain for chain in self.chains if chain.unheld_since is not None]
        if not chains:
            return []
        first = min(chains, key=lambda chain: chain.unheld_since or "")
        others = f", and of {counted(len(chains) - 1, 'other chain')}" if len(chains) > 1 else ""
        return [
            f"Since {first.unheld_since} (entry {first.held_entries} of {first.name}{others}), "
            "only hash chains hold it."
        ]

    def as_json(self) -> dict[str, object]:
        """Return it as JSON."""
        return {
            "told": self.paragraph(),
            "keys": [{"key": key, "known": known} for key, known in self.keys.items()],
            "chains": [
                {
                    "chain": chain.name,
                    "entries": chain.entries,
                    "signed": _claim_as_json(chain.signed),
                    "unheld_since": chain.unheld_since,
                    "unheld_from": chain.held_entries if chain.unheld_since else None,
                }
                for chain in self.chains
            ],
        }


def _claim_as_json(claim: Claim | None) -> dict[str, object] | None:
    if claim is None:
        return None
    return {"by": claim.by, "entries": claim.length, "at": claim.at}


def short(key: str) -> str:
    """Return a key's id as it is shown."""
    return f"{key[:16]}…"


def hold(report: Report, *, keys: Collection[str] = (), claims: Sequence[Claim] = ()) -> Held:
    """Compare the chains of a report with their signatures; add findings to the report.

    Parameters
    ----------
    keys
        The ids of the keys that the reader trusts. None: those that ledgers name.
    claims
        What is known from elsewhere, such as from an export.

    Raises
    ------
    ImportError
        There are signatures, and the package that checks them is not installed.
    """
    chains = report.chains
    good: dict[Path, list[Claim]] = {path: [] for path in chains}
    for path, chain in chains.items():
        for claim in [*_signatures(path, chain, report), *claims]:
            if claim.chain == chain.name and _agrees(claim, path, chain, report):
                good[path].append(claim)
    trusted = _known_keys(good, chains, keys)
    held = Held(keys=trusted)
    best = {
        path: _furthest(claim for claim in said if claim.by in trusted)
        for path, said in good.items()
    }
    _add_closed(best, chains)
    if keys or any(_named(chain) for chain in chains.values()):
        _expect(best, chains, trusted, bool(keys), report)
        _expect_let_go(best, report)
    held.notes += _accepted_breaks(best, chains)
    for path, chain in chains.items():
        made = HeldChain(name=chain.name, entries=len(chain), signed=best[path])
        if made.held_entries < made.entries:
            made.unheld_since = chain.time(made.held_entries)
        held.chains.append(made)
    if held.keys and any((path.parent / PRIVATE_KEY).is_file() for path in chains):
        held.notes.append(
            "The private key is beside the record: whoever can read this folder can sign what "
            "they write anew."
        )
    return held


def _furthest(claims: Iterable[Claim]) -> Claim | None:
    """Return the claim that goes furthest; the earliest of those that go equally far."""
    earliest_first = sorted(claims, key=lambda claim: claim.at)
    return max(earliest_first, key=lambda claim: claim.length, default=None)


def _signatures(path: Path, chain: ReadChain, report: Report) -> list[Claim]:
    """Return the genuine signatures in the file beside a chain."""
    if chain.signatures is None:
        return []
    beside = signatures_path(path)
    try:
        kept = json.loads(chain.signatures)
        if not isinstance(kept, list):
            raise TypeError("they are not a list")
        return [signed_claim(each, HEAD) for each in kept]
    except (ValueError, TypeError, RecursionError) as error:
        report.add(Outcome.ALTERED, beside, None, f"A signature is not genuine: {error}.")
        return []


def signed_claim(signature: Any, kind: str) -> Claim:
    """Return what a signature says.

    Raises
    ------
    ValueError
        If it is not genuine; why, in a part of a sentence.
    ImportError
        If the package that checks it is not installed.
    """
    if not isinstance(signature, dict) or not all(
        isinstance(signature.get(name), str) for name in _FIELDS
    ):
        raise ValueError("a field is missing")
    length = signature.get("length")
    if signature["format"] != kind or not isinstance(length, int) or length < 1:
        raise ValueError("it signs something else")
    if signature["key"] != key_id(signature["public_key"]):
        raise ValueError("its key has another id")
    _check_ed25519(signature)
    at, key = shown(signature["at"]), signature["key"]
    return Claim(key, signature["chain"], length, signature["head"], at)


def _check_ed25519(signature: dict[str, Any]) -> None:
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_der_public_key

    try:
        key = load_der_public_key(base64.b64decode(signature["public_key"], validate=True))
        if not isinstance(key, Ed25519PublicKey):
            raise ValueError("its key is of another kind")
        key.verify(base64.b64decode(signature["signature"]), signed_bytes(signature))
    except InvalidSignature:
        raise ValueError("it is not of this key, or what it signs was changed") from None
    except UnsupportedAlgorithm as error:
        raise ValueError("its key is of another kind") from error


def _agrees(claim: Claim, path: Path, chain: ReadChain, report: Report) -> bool:
    """Return whether a chain has the head that was signed; add a finding if not."""
    n, told = claim.length - 1, f"key {short(claim.by)} signed at {claim.at}"
    if n >= len(chain):
        message = f"It ends before entry {n}, which {told}."
        report.add(Outcome.TRUNCATED, path, len(chain), message)
    elif chain.hash(n) != claim.head:
        message = f"Entry {n}, or one before it, is not what {told}: it was written anew."
        report.add(Outcome.ALTERED, path, n, message)
    else:
        return True
    return False


def _named(chain: ReadChain) -> list[tuple[int, str]]:
    """Return the keys that a ledger names, each with the number of its entry."""
    return [
        (n, str(entry.get("key")))
        for n, entry in enumerate(chain.ledger)
        if entry.get("type") == "signing_key"
    ]


def _known_keys(
    good: dict[Path, list[Claim]], chains: dict[Path, ReadChain], given: Collection[str]
) -> dict[str, str]:
    """Return the keys that count, and how each is known."""
    if not given:
        return dict.fromkeys((claim.by for said in good.values() for claim in said), "found")
    trusted = dict.fromkeys(given, "given")
    count = 0
    while len(trusted) != count:
        count = len(trusted)
        for path, chain in chains.items():
            furthest = _furthest(each for each in good[path] if each.by in trusted)
            for n, key in _named(chain):
                if furthest is not None and n < furthest.length:
                    trusted.setdefault(key, "named")
    return trusted


def _held_part(ledger: ReadChain, claim: Claim | None) -> list[dict[str, Any]]:
    """Return the entries of a ledger that a claim covers."""
    return [] if claim is None else ledger.ledger[: claim.length]


def _add_closed(best: dict[Path, Claim | None], chains: dict[Path, ReadChain]) -> None:
    """Add what a held part of a ledger says of the ends of sessions."""
    by_name = {chain.name: path for path, chain in chains.items()}
    for ledger, claim in list(best.items()):
        for entry in _held_part(chains[ledger], claim):
            path, end = by_name.get(str(entry.get("session_id"))), end_in(entry.get("chain"))
            if claim is None or path is None or end is None or len(chains[path]) < end.length:
                continue
            if chains[path].hash(end.length - 1) == end.head:
                name = chains[path].name
                said = claim._replace(chain=name, length=end.length, head=end.head)
                claimed = best[path]
                best[path] = said if claimed is None else _furthest((claimed, said))


def _expect(
    best: dict[Path, Claim | None],
    chains: dict[Path, ReadChain],
    trusted: dict[str, str],
    is_given: bool,
    report: Report,
) -> None:
    """Add findings for chains that a server that signs would have signed."""
    listed = {
        str(entry.get("session_id"))
        for path, chain in chains.items()
        for entry in _held_part(chain, best[path])
        if entry.get("type") == "session_opened"
    }
    has_ledger = any(chain.ledger for chain in chains.values())
    for path, chain in chains.items():
        if best[path] is not None:
            continue
        if chain.ledger:
            is_expected = is_given or bool(_named(chain) and path.is_file())  # sinks get none
        else:
            is_expected = chain.name in listed or (is_given and not has_ledger)
        if is_expected:
            by = f"key {short(next(iter(trusted)))}" if is_given else "the key that a ledger names"
            report.add(Outcome.MISSING, path, None, f"There is no signature of it by {by}.")


def _expect_let_go(best: dict[Path, Claim | None], report: Report) -> None:
    """Add findings for what ledgers let go without a signature: anybody could have written that."""
    if not any(chain.ledger and path.is_file() for path, chain in report.chains.items()):
        return  # sinks get no signatures
    for each in report.let_go:
        claims = [(best[at.path], at.n) for at in each.said]
        if not any(claim is not None and n < claim.length for claim, n in claims):
            what = "it was removed" if each.n is None else f"entry {each.n} may erase from it"
            message = f"No signed entry of a ledger says that {what}."
            report.add(Outcome.MISSING, each.path, each.n, message)


def _accepted_breaks(
    best: dict[Path, Claim | None], chains: dict[Path, ReadChain]
) -> Iterator[str]:
    """Yield who accepted that the record did not continue what was signed."""
    for path, chain in chains.items():
        for entry in _held_part(chain, best[path]):
            if entry.get("type") == "break_accepted":
                found = entry.get("found")
                told = " ".join(map(shown, found)) if isinstance(found, list) else shown(found)
                yield (
                    f"{who(entry)} accepted at {shown(entry.get('at'))} that it did not continue "
                    f"what was signed: {told}"
                )


def export_claim(notebook: Path, report: Report) -> Claim | None:
    """Return what the signature in an exported notebook says; None if there is none.

    Raises
    ------
    ImportError
        There is one, and the package that checks it is not installed.
    """
    try:
        signature = json.loads(notebook.read_bytes())["metadata"]["agent_exec"].get("signature")
        return None if signature is None else signed_claim(signature, EXPORT)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        message = f"Its signature is not genuine: {shown(str(error))}."
        report.add(Outcome.ALTERED, notebook, None, message)
        return None


def hold_export(notebook: Path, *, keys: Collection[str] = ()) -> tuple[Report, Held] | None:
    """Check an exported notebook by its own signature, without the journal; None if it has none.

    Raises
    ------
    ImportError
        The package that checks signatures is not installed.
    """
    report = Report()
    claim = export_claim(notebook, report)
    if claim is None:
        return (report, Held()) if report.findings else None
    document = json.loads(notebook.read_bytes())
    _compare_cells(notebook, document, report)
    chain = HeldChain(name=claim.chain, entries=claim.length)
    held = Held(
        chains=[chain], keys=dict.fromkeys(keys or [claim.by], "given" if keys else "found")
    )
    if claim.by in held.keys:
        chain.signed = claim
    else:
        message = f"It is signed by key {short(claim.by)}, which is not the one that you gave."
        report.add(Outcome.MISSING, notebook, None, message)
    return report, held


def _compare_cells(notebook: Path, document: dict[str, Any], report: Report) -> None:
    """Compare a notebook's cells and metadata with the digests that were signed."""
    metadata = document["metadata"]
    signature = metadata["agent_exec"]["signature"]

    def differs(message: str) -> None:
        report.add(Outcome.ALTERED, notebook, None, message)

    try:
        signed = {str(id): str(digest) for id, digest in signature["cells"]}
        cells = {str(cell.get("id")): cell for cell in document["cells"]}
        if len(cells) != len(document["cells"]):
            differs("A cell is here twice.")
        for id, cell in cells.items():
            if id not in signed:
                differs(f"The cell {shown(id)} is not in the record: it was added.")
            elif signed[id] != cell_digest(cell):
                differs(f"The cell {shown(id)} is not as recorded: it was edited.")
        for id in signed.keys() - cells.keys():
            differs(f"The cell {shown(id)} is missing.")
        here = [id for id in cells if id in signed]
        if here != [id for id in signed if id in cells]:
            differs("The cells are in another order.")
        if metadata_digest(metadata) != signature["metadata"]:
            differs("The notebook's metadata differ from what was signed.")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        differs(f"It is not an exported notebook any more: {shown(repr(error))}.")
