"""Whatever is in the files of a history, `verify` ends with a verdict, and misses no damage."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jupyter_agent_exec.cli import main
from jupyter_agent_exec.journal import chain
from jupyter_agent_exec.journal.findings import Outcome, Report
from jupyter_agent_exec.journal.verify import verify_history, verify_journal, verify_session
from jupyter_agent_exec.journal.verify_notebook import verify_notebook
from tests.journal.recorded import new_history

STRANGE = (
    None, True, -1, 10**30, 1.5, "", "\ud800", "x" * 300, "../../x", "\0", [], {}, [[]], [{}],
    {"": {}},
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(written: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A history, and beside it the exports of its sessions."""
    folder = tmp_path_factory.mktemp("fuzzed")
    history = folder / "agent_exec"
    shutil.copytree(written, history)
    opened = new_history(Path(shutil.copytree(written, folder / "to_export")))
    for session in (history / "sessions").iterdir():
        text = "".join(opened.notebook(session.name))
        (folder / f"{session.name}.ipynb").write_text(text, "utf-8")
    opened.stop()
    assert outcomes(folder) == {Outcome.WHOLE}
    return folder


def reports(folder: Path) -> Iterator[Report]:
    history = folder / "agent_exec"
    yield verify_history(history)
    for ledger in history.glob("ledger-*.jsonl"):
        yield verify_journal(ledger)
    for session in sorted((history / "sessions").iterdir()):
        yield verify_session(history, session.name)
        yield verify_notebook(folder / f"{session.name}.ipynb", session / "journal.jsonl")


def outcomes(folder: Path) -> set[Outcome]:
    found = set()
    for report in reports(folder):
        found.add(report.outcome)
        for finding in report.findings:
            finding.message.encode("utf-8")
    return found


def files(folder: Path) -> list[Path]:
    kinds = ("*.jsonl", "*.head", "*.json", "blobs/*", "*.ipynb")
    history = [path for kind in kinds[:4] for path in (folder / "agent_exec").rglob(kind)]
    return sorted([*history, *folder.glob("*.ipynb")])


class Changing:
    """A file of which the content is other than it was, until the next."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.data = path.read_bytes()

    def __enter__(self) -> Changing:
        return self

    def __exit__(self, *_: object) -> None:
        self.path.write_bytes(self.data)


def test_a_flipped_bit_is_a_verdict(folder: Path) -> None:
    random_ = random.Random(13)
    for path in files(folder):
        with Changing(path) as file:
            for _ in range(10):
                data = bytearray(file.data)
                place = random_.randrange(len(data))
                data[place] ^= 1 << random_.randrange(8)
                path.write_bytes(data)
                found = outcomes(folder)
                if not says_the_same(path, file.data, bytes(data)):
                    assert found != {Outcome.WHOLE}, (path, data[place - 50 : place + 50])


def says_the_same(path: Path, before: bytes, after: bytes) -> bool:
    """Whether all that was changed of a file is what nobody recorded."""
    if path.suffix not in (".json", ".ipynb"):
        return False
    try:
        return without_unrecorded(json.loads(before)) == without_unrecorded(json.loads(after))
    except ValueError:
        return False


def without_unrecorded(value: Any) -> Any:
    if isinstance(value, dict):
        unrecorded = ("nbformat", "nbformat_minor", "last_used_at", "version", "revoked_at")
        return {
            name: without_unrecorded(item)
            for name, item in value.items()
            if name not in unrecorded and item not in (None, False, {}, [])
        }
    return [without_unrecorded(item) for item in value] if isinstance(value, list) else value


def test_a_cut_anywhere_is_a_verdict(folder: Path) -> None:
    random_ = random.Random(9)
    for path in files(folder):
        with Changing(path) as file:
            for end in [0, *(random_.randrange(len(file.data)) for _ in range(15))]:
                path.write_bytes(file.data[:end])
                assert outcomes(folder) != {Outcome.WHOLE}, (path, end, file.data[end:])


def spoilt(value: Any, place: tuple[Any, ...] = ()) -> Iterator[Callable[[Any], None]]:
    """Yield what takes out, renames, adds and retypes each field of a value, at any depth."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for name, item in items:

        def at(inner: Any, name: Any = name) -> tuple[Any, Any]:
            for step in place:
                inner = inner[step]
            return inner, name

        def take_out(inner: Any, at: Any = at) -> None:
            inner, name = at(inner)
            del inner[name]

        def rename(inner: Any, at: Any = at) -> None:
            inner, name = at(inner)
            if isinstance(inner, dict):
                inner[f"{name}x"] = inner.pop(name)
            else:
                inner.append(inner.pop(name))

        yield from (take_out, rename)
        for strange in STRANGE:

            def retype(inner: Any, at: Any = at, strange: Any = strange) -> None:
                inner, name = at(inner)
                inner[name] = strange

            yield retype
        if isinstance(item, (dict, list)):
            yield from spoilt(item, (*place, name))


def rechained(lines: list[bytes], n: int, entry: Any) -> bytes:
    """Return lines of which one has another entry and all that follow it were hashed anew."""
    previous, written = chain.GENESIS, []
    for index, line in enumerate(map(chain.parse_line, lines)):
        data = json.dumps(entry).encode() if index == n else line.canonical
        previous = chain.link(previous, data)
        written.append(chain.format_line(previous, data, line.payloads, line.salts))
    return b"".join(written)


def test_an_odd_entry_in_a_new_chain_gets_a_verdict(
    folder: Path,
) -> None:
    random_ = random.Random(5)
    history = folder / "agent_exec"
    for path in sorted(history.rglob("*.jsonl")):
        with Changing(path) as file:
            lines = file.data.splitlines(keepends=True)
            for n, line in enumerate(lines):
                entry = chain.parse_line(line).entry
                spoils = list(spoilt(entry))
                for spoil in random_.sample(spoils, min(len(spoils), 7)):
                    changed = json.loads(json.dumps(entry))
                    spoil(changed)
                    path.write_bytes(rechained(lines, n, changed))
                    outcomes(folder)
                path.write_bytes(rechained(lines, n, []) if n % 5 == 0 else file.data)
                outcomes(folder)


def test_a_file_of_any_shape_is_a_verdict(folder: Path) -> None:
    random_ = random.Random(7)
    for path in [each for each in files(folder) if each.suffix in (".json", ".ipynb")]:
        with Changing(path) as file:
            document = json.loads(file.data)
            spoils = list(spoilt(document))
            for spoil in random_.sample(spoils, min(len(spoils), 50)):
                changed = json.loads(file.data)
                spoil(changed)
                path.write_text(json.dumps(changed))
                outcomes(folder)
            for strange in STRANGE:
                path.write_text(json.dumps(strange))
                if strange != {} or path.name != "approval-policy.json":
                    assert outcomes(folder) != {Outcome.WHOLE}, (path, strange)


@pytest.mark.parametrize("deep", ["[" * 100_000, '{"a":' * 100_000, "[" * 900 + "]" * 900])
def test_what_is_nested_deeply_is_a_verdict(folder: Path, deep: str) -> None:
    for path in files(folder):
        with Changing(path):
            path.write_text(deep)
            assert outcomes(folder) != {Outcome.WHOLE}
            line = f'{{"hash":"{"0" * 64}","entry":{deep}}}\n'
            path.write_text(line)
            assert outcomes(folder) != {Outcome.WHOLE}


def test_the_command_says_it_too(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    random_ = random.Random(8)
    history = folder / "agent_exec"
    journal, *_ = sorted(history.glob("sessions/*/journal.jsonl"))
    export = folder / f"{journal.parent.name}.ipynb"
    named = ["--history", str(history)]
    asked = [[str(history)], [str(export), *named], [journal.parent.name, *named]]
    for path in (journal, export, history / "tokens.json"):
        with Changing(path) as file:
            for _ in range(4):
                data = bytearray(file.data)
                for _ in range(3):
                    data[random_.randrange(len(data))] ^= 1 << random_.randrange(8)
                path.write_bytes(data)
                for words in asked:
                    for form in ([], ["--json"]):
                        assert main(["verify", *words, *form]) in (0, 1, 2, 3, 4, 5)
    capsys.readouterr()
