"""`jupyter agent-exec verify`: check that the record is unchanged. It needs no server."""

from __future__ import annotations

import json
import re
from argparse import ArgumentParser, Namespace
from datetime import datetime, timedelta
from pathlib import Path

from jupyter_core.paths import jupyter_data_dir

from ..central.archive import Archive, Span, open_archive
from ..central.search import search_archive
from ..central.verify import verify_archive
from ..central.witness import witnessed
from ..client.display import quoted
from ..counts import counted
from ..errors import InvalidRequest
from ..journal.heads import key_id
from ..journal.proofs import Claim, Held, export_claim, hold, hold_export, timestamped
from ..journal.verify import Outcome, Report, verify_history, verify_journal, verify_session
from ..queries import moment
from . import exit_codes
from .command import command
from .console import Console
from .usage import UsageError

_PATIENCE = 0.5
"""Seconds to wait for a server that is writing to the history."""

_HEAD = re.compile(r"[0-9a-f]{64}")

_PUBLIC_KEY = re.compile("-----BEGIN PUBLIC KEY-----(.+?)-----END PUBLIC KEY-----", re.DOTALL)

_SAID = {
    Outcome.WHOLE: "Whole: every line is as it was written, and every payload is there",
    Outcome.ALTERED: "ALTERED: something is not as it was written.",
    Outcome.TRUNCATED: "TRUNCATED: the record ends before the head that is known.",
    Outcome.TORN: "Torn: the last line is incomplete, since a server died while it wrote.",
    Outcome.MISSING: "MISSING: something that the record names is not there.",
}

_ARRIVED_WHOLE = "Whole: every line is as it was written, and none is missing"
"""Payloads need not be sent."""


def _lacks(report: Report) -> str:
    """Return the end of the sentence that a history is whole."""
    lacks = ["what was erased or removed"] if report.erased else []
    lacks += ["what was not checked"] if report.unchecked else []
    return f", except {' and '.join(lacks)}, as listed above." if lacks else "."


_EPILOG = """\
exit codes: 0 whole, 1 altered, 2 usage, 3 truncated before the known head, 4 incomplete last line
(a server died while it wrote), 5 something that the record names is missing. If there are several
problems, the code is that of the most serious one.

examples:
  jupyter agent-exec verify                      the whole history
  jupyter agent-exec verify s_01…                a session, and its entries in the ledger
  jupyter agent-exec verify s_01….ipynb          an export, against its journal in the history
  jupyter agent-exec verify journal.jsonl --head 9f86d0…
  jupyter agent-exec verify --from postgresql://audit.example.org/audit   what all servers sent
  jupyter agent-exec verify --from postgresql://audit.example.org/audit --since 2026-11-21
                                                 what they sent of that day and later"""


def _options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "what",
        metavar="WHAT",
        nargs="?",
        help="a history's folder, a session's id, a journal or ledger, or an exported notebook; "
        "by default the history",
    )
    parser.add_argument(
        "--history", metavar="DIR", help="the history's folder (agent_exec in Jupyter's data)"
    )
    parser.add_argument(
        "--journal",
        metavar="FILE",
        help="the journal of an exported notebook, if it is not in the history",
    )
    parser.add_argument(
        "--from",
        dest="origin",
        metavar="SINK",
        help="check what all servers have sent to a sink: postgresql://…, s3://…, or a folder",
    )
    parser.add_argument(
        "--since",
        metavar="TIME",
        help="with --from: only entries since this time, such as 2026-11-21",
    )
    parser.add_argument(
        "--until",
        metavar="TIME",
        help="with --from: only entries until this time; a date means its whole day",
    )
    parser.add_argument(
        "--head",
        metavar="HASH",
        help="a chain head that you kept elsewhere; proves that nothing is cut off",
    )
    parser.add_argument(
        "--witness",
        metavar="SINK",
        help="a sink that got copies: compare the chains with what it has; postgresql://…, s3://…, "
        "or a folder",
    )
    parser.add_argument(
        "--authority",
        metavar="FILE",
        help="the certificates, in PEM, of the timestamp authorities that you trust",
    )
    parser.add_argument(
        "--key",
        metavar="KEY",
        action="append",
        default=[],
        help="the public key that must have signed it: a PEM file or the key's SHA-256; from "
        "elsewhere, not from the history; more than once for several",
    )


@command(
    "verify",
    "check that the record is whole and unchanged; needs no server",
    _options,
    epilog=_EPILOG,
    server=False,
)
def verify(arguments: Namespace, console: Console) -> int:
    """Check a history, a session, a journal or an exported notebook."""
    head = arguments.head
    if head is not None and not _HEAD.fullmatch(head):
        raise UsageError("--head takes a SHA-256: 64 characters of 0-9a-f.")
    keys = [_key(word) for word in arguments.key]
    try:
        report, held = _checked(arguments, head, keys)
    except OSError as error:
        raise UsageError(f"{error.filename} cannot be read: {error.strerror}.") from error
    outcome = report.outcome
    if arguments.json:
        console.json(_as_json(report) | {"held": None if held is None else held.as_json()})
        return int(outcome)
    for finding in report.findings:
        console.line(f"{finding.outcome.name.lower()}  {finding.path}: {finding.message}")
    for told in report.erased:
        console.line(f"erased  {told}")
    for told in report.unchecked:
        console.line(f"not checked  {told}")
    whole = _SAID[outcome] if arguments.origin is None else _ARRIVED_WHOLE
    console.line(whole + _lacks(report) if outcome is Outcome.WHOLE else _SAID[outcome])
    if held is not None:
        console.line(held.paragraph())
    console.note(f"{counted(report.journals, 'chain')}, {counted(report.entries, 'entry')} checked")
    return int(outcome)


def archive_at(place: str, option: str = "--from") -> Archive:
    """Return the archive that an option names.

    Raises
    ------
    UsageError
        There is none, or it cannot be read.
    """
    try:
        return open_archive(place)
    except (ImportError, OSError, ValueError) as error:
        raise UsageError(f"{option}: {error}") from error


def _span(arguments: Namespace) -> Span | None:
    """Return the time that the arguments name; None if they name none."""
    if arguments.since is None and arguments.until is None:
        return None
    try:
        since = arguments.since and datetime.fromisoformat(moment(arguments.since, "--since")[0])
        until = arguments.until and datetime.fromisoformat(moment(arguments.until, "--until")[1])
    except InvalidRequest as error:
        raise UsageError(str(error)) from error
    return Span(since or None, until + timedelta(milliseconds=1) if until else None)


def search_central(arguments: Namespace, console: Console) -> int:
    """Search what the servers of a site have sent to a sink."""
    for name in ("target", "has_image", "review"):
        if getattr(arguments, name):
            raise UsageError(f"--{name.replace('_', '-')}: not with --from.")
    wanted = {"agent": arguments.agent, "status": arguments.status, "session_id": arguments.session}
    with archive_at(arguments.origin) as archive:
        hits = search_archive(archive, arguments.query, _span(arguments))
    hits = [
        hit
        for hit in hits
        if all(value in (None, getattr(hit, name)) for name, value in wanted.items())
    ][: arguments.limit]
    if arguments.json:
        console.json(hits)
        return exit_codes.OK
    rows = (
        (hit.server, hit.execution_id, hit.status, hit.accepted_at, quoted(hit.agent), hit.match)
        for hit in hits
    )
    console.table(("SERVER", "EXECUTION", "STATUS", "TIME", "CALLS ITSELF", "MATCH"), rows, 80)
    return exit_codes.OK


def _key(word: str) -> str:
    """Return the id of a public key, from its file or from the id itself."""
    if _HEAD.fullmatch(word):
        return word
    try:
        pem = _PUBLIC_KEY.search(Path(word).read_text("ascii"))
        if pem is not None:
            return key_id("".join(pem[1].split()))
    except (OSError, ValueError):
        pass
    raise UsageError(
        f"--key takes a file with a public key in PEM, or the key's SHA-256; not {word!r}."
    )


def _checked(arguments: Namespace, head: str | None, keys: list[str]) -> tuple[Report, Held | None]:
    """Check what the arguments name; with --from, nobody else says anything of it."""
    if arguments.origin is not None:
        with archive_at(arguments.origin) as archive:
            return verify_archive(archive, _span(arguments)), None
    if arguments.since is not None or arguments.until is not None:
        raise UsageError("--since and --until need --from: a history is verified as a whole.")
    try:
        path = Path(arguments.what or "")
        if path.suffix == ".ipynb" and path.is_file():
            return _checked_notebook(arguments, path, head, keys)
        report = _checked_history(arguments, head)
        return report, _held(arguments, report, keys, [])
    except ImportError as error:
        raise UsageError(
            "There are signatures, and what checks them is not installed: "
            f"pip install 'jupyter-agent-exec[signing]' ({error})."
        ) from error


def _checked_history(arguments: Namespace, head: str | None) -> Report:
    history = _history(arguments)
    word: str | None = arguments.what
    if word is None:
        return verify_history(_folder(history), head=head, patience=_PATIENCE)
    path = Path(word)
    if path.is_dir():
        return verify_history(path, head=head, patience=_PATIENCE)
    if word.startswith("s_") and not path.exists():
        return verify_session(_folder(history), word, head=head, patience=_PATIENCE)
    if not path.is_file():
        raise UsageError(f"There is no file or folder {word}.")
    return verify_journal(path, head=head)


def _checked_notebook(
    arguments: Namespace, path: Path, head: str | None, keys: list[str]
) -> tuple[Report, Held]:
    journal = Path(arguments.journal or _journal_of(path, _history(arguments))).resolve()
    if not journal.is_file():
        alone = None if arguments.journal else hold_export(path, keys=keys)
        if alone is None:
            raise UsageError(f"There is no journal {journal}; name it with --journal or --history.")
        return alone
    from ..journal.verify_notebook import verify_notebook  # nbformat takes long to import

    report = verify_notebook(path, journal)
    known = _of_journal(journal, head)
    report.findings.extend(each for each in known.findings if each not in report.findings)
    report.journals, report.entries, report.chains = known.journals, known.entries, known.chains
    claim = export_claim(path, report)
    return report, _held(arguments, report, keys, [] if claim is None else [claim])


def _held(arguments: Namespace, report: Report, keys: list[str], claims: list[Claim]) -> Held:
    """Say against whom the chains of a report hold, with what the arguments name."""
    certificates = Path(arguments.authority).read_bytes() if arguments.authority else None
    if certificates is not None and b"BEGIN CERTIFICATE" not in certificates:
        raise UsageError(f"--authority: {arguments.authority} holds no certificate in PEM.")
    stamped, notes = timestamped(report, certificates)
    claims = [*claims, *stamped, *_witnessed(arguments.witness, report)]
    held = hold(report, keys=keys, claims=claims)
    held.notes += notes
    return held


def _witnessed(place: str | None, report: Report) -> list[Claim]:
    """Return what a sink has of the chains of a report."""
    if place is None:
        return []
    with archive_at(place, "--witness") as archive:
        without_password = re.sub("//[^/@]*@", "//", place)
        return witnessed(archive, without_password, report)


def _of_journal(journal: Path, head: str | None) -> Report:
    """Check a journal, also against the ledgers if it is part of a history."""
    sessions = journal.parent.parent
    if sessions.name == "sessions" and any(sessions.parent.glob("ledger-*.jsonl")):
        return verify_session(sessions.parent, journal.parent.name, head=head, patience=_PATIENCE)
    return verify_journal(journal, head=head)


def _history(arguments: Namespace) -> Path:
    return Path(arguments.history or Path(jupyter_data_dir()) / "agent_exec")


def _folder(path: Path) -> Path:
    if not path.is_dir():
        raise UsageError(f"There is no history in {path}; name its folder.")
    return path


def _journal_of(notebook: Path, history: Path) -> Path:
    """Return where the journal of an exported notebook's session should be."""
    try:
        metadata = json.loads(notebook.read_text("utf-8"))["metadata"]["agent_exec"]
        clean = "session_id" in metadata
        session_id = str((metadata if clean else metadata["events"][0])["session_id"])
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise UsageError(
            f"{notebook} is not a notebook that was exported from a session: it does not say "
            "which. Name the session's journal with --journal."
        ) from error
    if not re.fullmatch(r"s_\w+", session_id):
        raise UsageError(f"{notebook} names a session that cannot be: {session_id!r}.")
    return history / "sessions" / session_id / "journal.jsonl"


def _as_json(report: Report) -> dict[str, object]:
    return {
        "outcome": report.outcome.name.lower(),
        "exit_code": int(report.outcome),
        "chains": report.journals,
        "entries": report.entries,
        "erased": report.erased,
        "unchecked": report.unchecked,
        "findings": [
            {
                "outcome": finding.outcome.name.lower(),
                "path": str(finding.path),
                "entry": finding.n,
                "message": finding.message,
            }
            for finding in report.findings
        ],
    }
