"""`jupyter agent-exec verify`: check that the record is unchanged. It needs no server."""

from __future__ import annotations

import json
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path

from jupyter_core.paths import jupyter_data_dir

from ..journal.findings import Outcome, Report
from ..journal.heads import journal_in, key_id
from ..journal.proofs import Held, export_claim, hold, hold_export
from ..journal.verify import journals_of, verify_history, verify_journal, verify_session
from ..text.counts import counted
from ..types import DIGEST
from .command import command, option
from .console import Console
from .usage import UsageError

_PATIENCE = 0.5
"""Seconds to wait for a server that is writing to the history."""


_PUBLIC_KEY = re.compile("-----BEGIN PUBLIC KEY-----(.+?)-----END PUBLIC KEY-----", re.DOTALL)

_SAID = {
    Outcome.WHOLE: "Whole: every line is as it was written, and every payload is there{}.",
    Outcome.ALTERED: "ALTERED: something is not as it was written.",
    Outcome.TRUNCATED: "TRUNCATED: the record ends before the head that is known.",
    Outcome.TORN: "Torn: the last line is incomplete, since a server died while it wrote.",
    Outcome.MISSING: "MISSING: something that the record names is not there.",
}


_EPILOG = """\
exit codes: 0 whole, 1 altered, 2 usage, 3 truncated before the known head, 4 incomplete last line
(a server died while it wrote), 5 something that the record names is missing. If there are several
problems, the code is that of the most serious one.

examples:
  jupyter agent-exec verify                      the whole history
  jupyter agent-exec verify s_01…                a session, and its entries in the ledger
  jupyter agent-exec verify s_01….ipynb          an export, against its journal in the history
  jupyter agent-exec verify journal.jsonl --head 9f86d0…"""


def _options(parser: ArgumentParser) -> None:
    what = "the folder of a history or of a sink, a session's id, a journal or ledger, or an "
    option(parser, "[WHAT]", what + "exported notebook; by default the history")
    option(parser, "--history DIR", "the history's folder (agent_exec in Jupyter's data)")
    journal = "the journal of an exported notebook, if it is not in the history"
    option(parser, "--journal FILE", journal)
    head = "a chain head that you kept elsewhere; proves that nothing is cut off"
    option(parser, "--head HASH", head)
    key = "the public key that must have signed it: a PEM file or the key's SHA-256; from "
    key += "elsewhere, not from the history; more than once for several"
    option(parser, "--key KEY", key, repeated=True)


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
    if head is not None and not DIGEST.fullmatch(head):
        raise UsageError("--head takes a SHA-256: 64 characters of 0-9a-f.")
    keys = [_key(word) for word in arguments.key]
    try:
        report, held = _checked(arguments, head, keys, console)
    except OSError as error:
        raise UsageError(f"{error.filename} cannot be read: {error.strerror}.") from error
    console.answer(_as_json(report) | {"held": held.as_json()}, *_lines(report), held.paragraph())
    console.note(f"{counted(report.journals, 'chain')}, {counted(report.entries, 'entry')} checked")
    return int(report.outcome)


def _lines(report: Report) -> Iterator[str]:
    for finding in report.findings:
        yield f"{finding.outcome.name.lower()}  {finding.path}: {finding.message}"
    for told in report.erased:
        yield f"erased  {told}"
    for told in report.unchecked:
        yield f"not checked  {told}"
    lacks = ["what was erased or removed"] if report.erased else []
    lacks += ["what was not checked"] if report.unchecked else []
    except_for = f", except {' and '.join(lacks)}, as listed above" if lacks else ""
    yield _SAID[report.outcome].format(except_for)


def _key(word: str) -> str:
    """Return the id of a public key, from its file or from the id itself."""
    if DIGEST.fullmatch(word):
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


def _checked(
    arguments: Namespace, head: str | None, keys: list[str], console: Console
) -> tuple[Report, Held]:
    """Check what the arguments name, and say against whom it holds."""
    try:
        path = Path(arguments.what or "")
        is_notebook = path.suffix == ".ipynb" and path.is_file()
        if arguments.journal and not is_notebook:
            raise UsageError("--journal is for an exported notebook.")
        is_found = arguments.journal or (arguments.what and path.exists() and not is_notebook)
        if arguments.history and is_found:
            raise UsageError("--history: the other arguments name what to check; leave it out.")
        if is_notebook:
            return _checked_notebook(arguments, path, head, keys)
        report = _checked_history(arguments, head, console)
        return report, hold(report, keys=keys)
    except ImportError as error:
        raise UsageError(
            "There are signatures, and what checks them is not installed: "
            f"pip install 'jupyter-agent-exec[signing]' ({error})."
        ) from error


def _checked_history(arguments: Namespace, head: str | None, console: Console) -> Report:
    history = _history(arguments)
    word = arguments.what or str(_folder(history))
    path = Path(word)
    if path.is_dir():
        with console.progress("verify", " sessions", len(journals_of(path))) as progress:
            return verify_history(path, head=head, patience=_PATIENCE, progress=progress)
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
    return report, hold(report, keys=keys, claims=[] if claim is None else [claim])


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
    return journal_in(history, session_id)


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
