"""Signatures of heads: what is signed, what `verify` says, and what it finds with whose help.

docs/how-to/audit.md shows the command.
"""

from __future__ import annotations

import base64
import json
import logging
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import nbformat
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from jupyter_agent_exec.audit.kept_heads import KeptHeads, KeptLedger
from jupyter_agent_exec.audit.signer import Signer, SigningKey
from jupyter_agent_exec.cli import main
from jupyter_agent_exec.client import AgentExecClient
from jupyter_agent_exec.journal.heads import PRIVATE_KEY, cell_digest, signatures_path, signed_bytes
from jupyter_agent_exec.journal.proofs import hold
from jupyter_agent_exec.journal.verify import verify_history
from jupyter_agent_exec.models import Chain
from tests.audit.far_sides import until
from tests.audit.rewriting import cut, journals, ledger_of, write_anew
from tests.journal.recorded import closed, new_history, opened, run, stream
from tests.real_server import PROJECT, real_server

LOG = logging.getLogger("test.signing")


class Signing:
    """A history whose heads are signed, as a server does it; the rounds are asked for."""

    def __init__(self, folder: Path, key: Path, **options: Any) -> None:
        self.folder = folder
        self.history = new_history(folder, **options)
        heads, self.told = key.with_suffix(".heads"), []
        tell = partial(self.told.append, "changed")
        self.signer = Signer(self.history, lambda: SigningKey.made(key), heads, 3600, tell, LOG)
        self.history.signatures = self.signer
        self.signer.start()
        self.sign()  # the first round names the key, while the history takes entries

    def sign(self) -> None:
        """Sign what has grown, now."""
        self.signer.sign()

    def stop(self) -> None:
        self.history.stop()

    def crash(self) -> None:
        """End as a server that is killed: what was written last is not signed."""
        self.signer._round = lambda **_: None
        self.stop()


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A signed history of two closed sessions; its key is elsewhere."""
    folder = tmp_path_factory.mktemp("signed")
    write(folder / "agent_exec", folder / "key.pem", 2)
    return folder


def write(folder: Path, key: Path, sessions: int, *, close: bool = True) -> list[str]:
    """Write sessions as a server does that signs, from its start to its end."""
    signing = Signing(folder, key)
    try:
        made = [signing.history.open_session(opened()) for _ in range(sessions)]
        for session in made:
            run(session, 1, "secret = 1", [stream("one\n")])
            run(session, 2, "secret + 1", [stream("two\n")])
            if close:
                session.close(closed())
    finally:
        signing.stop()
    return [str(session.session_id) for session in made]


@pytest.fixture
def there(signed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(signed, tmp_path / "there")) / "agent_exec"


@pytest.fixture
def key(signed: Path) -> str:
    return SigningKey(signed / "key.pem").id


Verify = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def verify(capsys: pytest.CaptureFixture[str]) -> Verify:
    def verify(*words: object) -> tuple[int, dict[str, Any]]:
        code = main(["verify", "--json", *map(str, words)])
        return code, json.loads(capsys.readouterr().out)

    return verify


def test_a_live_server_may_sign_more_while_it_is_verified(tmp_path):
    signing = Signing(tmp_path / "agent_exec", tmp_path / "key.pem")
    try:
        signing.history.open_session(opened())
        signing.sign()
        report = verify_history(signing.folder)
        signing.history.open_session(opened())
        signing.sign()
        assert hold(report, keys=[SigningKey(tmp_path / "key.pem").id]).chains
        assert report.findings == []
    finally:
        signing.stop()


def remove_signatures(folder: Path) -> None:
    for path in [*folder.glob("*.signatures"), *folder.glob("sessions/*/*.signatures")]:
        path.unlink()


def test_all_chains_are_signed_to_their_ends(there, key, verify):
    code, report = verify(there, "--key", key)
    assert code == 0
    held = report["held"]
    assert held["keys"] == [{"key": key, "known": "given"}]
    assert [each["signed"]["entries"] for each in held["chains"]] == [
        each["entries"] for each in held["chains"]
    ]
    assert len(held["chains"]) == 3
    assert held["told"].startswith(f"Signed by key {key[:16]}…: 3 of 3 chains, 3 of them to their")
    assert "--key" not in held["told"]
    assert "only hash chains" not in held["told"]


def test_a_key_that_only_the_record_names_is_said_to_be_worth_little(there, verify):
    code, report = verify(there)
    assert code == 0
    assert "known only from what was verified" in report["held"]["told"]


def test_a_private_key_in_the_folder_is_said_to_be_worth_little(tmp_path, verify):
    folder = tmp_path / "agent_exec"
    folder.mkdir()
    write(folder, folder / PRIVATE_KEY, 1)
    assert (folder / PRIVATE_KEY).stat().st_mode & 0o777 == 0o600
    code, report = verify(folder, "--key", SigningKey(folder / PRIVATE_KEY).id)
    assert code == 0
    assert "The private key is beside the record" in report["held"]["told"]


def test_a_key_is_given_as_a_file_too(there, signed, tmp_path, verify):
    private = SigningKey(signed / "key.pem")
    pem = private._key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "key.pub").write_bytes(pem)
    code, report = verify(there, "--key", tmp_path / "key.pub")
    assert (code, report["held"]["keys"][0]["key"]) == (0, private.id)
    assert main(["verify", str(there), "--key", str(signed / "key.pem")]) == 2


def test_one_changed_entry_is_found_by_the_hash_chain_already(there, key, verify):
    journal = journals(there)[0]
    journal.write_bytes(journal.read_bytes().replace(b'"agent":"analyst"', b'"agent":"forged"', 1))
    code, report = verify(there, "--key", key)
    assert code == 1
    assert "Entry 0 or its hash was altered" in report["findings"][0]["message"]


def test_a_history_written_anew_is_found_by_its_signatures(there, key, verify):
    write_anew(there)
    code, report = verify(there, "--key", key)
    assert code == 1
    told = [each["message"] for each in report["findings"]]
    assert sum(f"is not what key {key[:16]}… signed at" in each for each in told) == 3
    assert verify(there)[0] == 1


def test_hash_chains_alone_do_not_find_a_rewritten_history(there, verify, tmp_path):
    plain = tmp_path / "plain"
    history = new_history(plain)
    session = history.open_session(opened())
    session.close(closed())
    history.stop()
    write_anew(plain)
    code, report = verify(plain)
    assert (code, report["findings"]) == (0, [])
    assert report["held"]["told"].startswith("Only hash chains hold it")
    assert report["held"]["chains"][0]["signed"] is None


def test_a_rewritten_history_without_signatures_is_found(there, key, verify):
    write_anew(there)
    remove_signatures(there)
    code, report = verify(there, "--key", key)
    assert code == 5
    assert {each["message"] for each in report["findings"]} == {
        f"There is no signature of it by key {key[:16]}…."
    }
    assert verify(there)[0] == 5  # its ledger still names the key


def test_a_rewritten_history_signed_by_another_key_is_found(there, key, tmp_path, verify):
    write_anew(there)
    remove_signatures(there)
    write(there, tmp_path / "another.pem", 1)
    assert verify(there, "--key", key)[0] == 5
    code, report = verify(there)  # nothing shows it, and nothing else is said
    assert code == 0
    assert "whoever wrote it anew could sign it" in report["held"]["told"]


def test_signatures_of_one_session_that_are_gone_are_missed(there, key, verify):
    write(there, there.parent / "key.pem", 1, close=False)  # the next server has not come yet
    open_session = next(path for path in journals(there) if b'"closed"' not in path.read_bytes())
    assert verify(there, "--key", key)[0] == 0
    signatures_path(open_session).unlink()
    code, report = verify(there, "--key", key)
    assert (code, report["findings"][0]["path"]) == (5, str(open_session))


def test_a_journal_cut_off_is_found_by_its_signature(there, key, verify):
    journal = journals(there)[0]
    cut(journal, 2)
    code, report = verify(journal, "--key", key)
    assert code == 3
    assert "It ends before entry 7, which key" in report["findings"][0]["message"]


def test_a_history_rolled_back_is_found_by_a_signature_that_was_kept(signed, tmp_path, key, verify):
    older = Path(shutil.copytree(signed, tmp_path / "older")) / "agent_exec"
    newer = Path(shutil.copytree(signed, tmp_path / "newer")) / "agent_exec"
    write(newer, signed / "key.pem", 1)
    newest = json.loads(signatures_path(ledger_of(newer)).read_bytes())[0]
    code, report = verify(older, "--key", key)  # it is what was signed then, and says when
    assert code == 0
    assert report["held"]["chains"][-1]["signed"]["at"] < newest["at"]
    assert verify(newer, "--key", key, "--head", newest["head"])[0] == 0
    code, report = verify(older, "--key", key, "--head", newest["head"])
    assert (code, report["findings"][0]["message"]) == (
        3, "The known head is in none of the chains.",
    )  # fmt: skip


def test_what_was_not_signed_yet_is_told_with_its_entry_and_time(tmp_path, verify):
    key_file = tmp_path / "key.pem"
    signing = Signing(tmp_path / "agent_exec", key_file)
    try:
        session = signing.history.open_session(opened())
        signing.sign()
        run(session, 1, "late", [])
        code, report = verify(session.session_id, "--history", signing.folder)
        held = next(
            each for each in report["held"]["chains"] if each["chain"] == session.session_id
        )
        assert (code, held["entries"], held["signed"]["entries"], held["unheld_from"]) == (
            0, 4, 1, 1,
        )  # fmt: skip
        assert held["unheld_since"] is not None
        assert f"(entry 1 of {session.session_id}), only hash chains" in report["held"]["told"]
        newest = session.file.signed_head
        assert newest.length == 4
        assert newest.signature is not None
        assert newest.signature.length == 1
    finally:
        signing.stop()


def test_a_signature_in_the_name_of_another_key_is_found(there, key, tmp_path, verify):
    path = signatures_path(journals(there)[0])
    (told,) = json.loads(path.read_bytes())
    forger = SigningKey.made(tmp_path / "forger.pem")
    forged = {**told, "at": "2020-01-01T00:00:00.000Z", "public_key": forger.public_key}
    signature = forger._key.sign(signed_bytes(forged))
    path.write_text(json.dumps([{**forged, "signature": base64.b64encode(signature).decode()}]))
    code, report = verify(journals(there)[0], "--key", key)
    assert (code, "another id" in report["findings"][0]["message"]) == (1, True)


def test_old_signatures_can_be_verified_after_the_key_was_changed(there, key, tmp_path, verify):
    write(there, tmp_path / "new.pem", 1)
    new = SigningKey(tmp_path / "new.pem").id
    code, report = verify(there, "--key", new)
    assert code == 0
    assert report["held"]["keys"] == [
        {"key": new, "known": "given"},
        {"key": key, "known": "named"},
    ]
    code, report = verify(journals(there)[0], "--key", key)
    assert (code, report["held"]["chains"][0]["signed"]["by"]) == (0, key)
    code, report = verify(there, "--key", key)
    assert code == 0
    assert "Since" in report["held"]["told"]


def test_a_chain_that_is_not_what_was_signed_is_not_signed_on(there, caplog, verify):
    write_anew(there)  # in another folder than the one whose heads are kept: signatures are there
    before = {path: signatures_path(path).read_bytes() for path in [ledger_of(there)]}
    write(there, there.parent / "key.pem", 1)
    assert "entry 5, which was signed, was cut off or written anew" in caplog.text
    assert before == {path: signatures_path(path).read_bytes() for path in before}
    assert verify(there)[0] == 1


def test_a_disk_that_fails_stops_signatures_and_nothing_else(tmp_path, caplog, verify):
    key_file = tmp_path / "nowhere" / "key.pem"
    signing = Signing(tmp_path / "agent_exec", key_file)
    try:
        session = signing.history.open_session(opened())
        run(session, 1, "1", [])
        signing.sign()
        signing.sign()
        assert session.file.signed_head.signature is None
        assert caplog.text.count("cannot be signed") == 1
        key_file.parent.mkdir()
        signing.sign()
        assert session.file.signed_head.signature is not None
    finally:
        signing.stop()


@pytest.mark.parametrize(
    "change",
    [
        lambda told: told[0].update(length=2),
        lambda told: told[0].update(at="2020-01-01T00:00:00.000Z"),
        lambda told: told[0].update(signature="AAAA"),
        lambda told: told[0].update(public_key="AAAA"),
        lambda told: told[0].update(format="another"),
        lambda told: told.append(7),
        lambda told: told.__setitem__(0, {}),
    ],
)
def test_a_signature_that_is_not_genuine_is_found(there, verify, change):
    path = signatures_path(journals(there)[0])
    told = json.loads(path.read_bytes())
    change(told)
    path.write_text(json.dumps(told))
    code, report = verify(journals(there)[0])
    assert code == 1
    assert report["findings"][0]["message"].startswith("A signature is not genuine")


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "clean"])
def exported(request: pytest.FixtureRequest, signed: Path) -> str:
    """An export of a signed session, as text."""
    signing = Signing(signed / "agent_exec", signed / "key.pem")
    try:
        signing.sign()
        session_id = journals(signing.folder)[0].parent.name
        return "".join(signing.history.notebook(session_id, clean=request.param))
    finally:
        signing.stop()


@pytest.fixture
def export(exported: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The export alone: the journal is not there."""
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    path = tmp_path / "export.ipynb"
    path.write_text(exported, "utf-8")
    return path


def test_an_export_says_by_itself_who_signed_it_and_when(export, key, verify):
    code, report = verify(export)
    assert code == 0
    assert report["held"]["told"].startswith(f"Signed by key {key[:16]}…: until entry ")
    assert "known only from what was verified" in report["held"]["told"]
    code, report = verify(export, "--key", key)
    assert (code, "--key" in report["held"]["told"]) == (0, False)
    assert verify(export, "--key", "0" * 64)[0] == 5


def test_an_export_that_other_tools_saved_again_is_as_it_was_signed(export, verify):
    notebook = nbformat.read(export, as_version=4)
    notebook.cells[0].metadata["tags"] = ["mine"]
    nbformat.write(notebook, export)
    assert verify(export)[0] == 0


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda nb: nb["cells"][1].update(source="secret + 2"), "was edited"),
        (lambda nb: nb["cells"][1]["outputs"].clear(), "was edited"),
        (lambda nb: nb["cells"].pop(), "is missing"),
        (lambda nb: nb["cells"].reverse(), "another order"),
        (lambda nb: nb["cells"].append({**nb["cells"][0], "id": "mine"}), "was added"),
        (lambda nb: nb["cells"].append(nb["cells"][0]), "twice"),
        (lambda nb: nb["metadata"]["agent_exec"].update(schema_version=2), "metadata differ"),
        (
            lambda nb: nb["metadata"]["agent_exec"]["signature"]["cells"].pop(),
            "signature is not genuine",
        ),
        (lambda nb: nb.update(cells=[7]), "not an exported notebook"),
    ],
)
def test_an_export_alone_tells_what_was_changed_in_it(export, verify, change, told):
    notebook = json.loads(export.read_text("utf-8"))
    change(notebook)
    export.write_text(json.dumps(notebook), "utf-8")
    code, report = verify(export)
    assert code == 1
    assert any(told in each["message"] for each in report["findings"])


def test_an_export_with_its_journal_finds_a_history_written_anew(export, there, key, verify):
    assert verify(export, "--history", there, "--key", key)[0] == 0
    write_anew(there)
    remove_signatures(there)
    code, report = verify(export, "--history", there)
    assert code == 1
    assert any("is not what key" in each["message"] for each in report["findings"])


def test_a_history_that_was_altered_is_not_signed_in_exports(there, signed):
    journal = journals(there)[0]
    journal.write_bytes(journal.read_bytes().replace(b"secret = 1", b"secret = 2"))
    signing = Signing(there, signed / "key.pem")
    try:
        signing.sign()
        notebooks = [
            json.loads("".join(signing.history.notebook(path.parent.name)))
            for path in journals(there)
        ]
    finally:
        signing.stop()
    assert ["signature" in each["metadata"]["agent_exec"] for each in notebooks] == [False, True]


def test_what_is_signed_is_the_same_in_any_form_of_the_notebook():
    cell = {
        "id": "a", "cell_type": "code", "execution_count": 1, "source": "1\n2", "metadata": {},
        "outputs": [
            {"output_type": "display_data", "metadata": {}, "data": {"text/plain": "a\nb",
             "application/json": {"x": 1.0, "y": [1, 2], "nan": float("nan")}}},
            {"output_type": "stream", "name": "stdout", "text": "a\nb"},
        ],
    }  # fmt: skip
    other = json.loads(json.dumps(cell).replace("1.0", "1").replace("NaN", "null"))
    other["source"] = ["1\n", "2"]
    other["outputs"][0]["data"]["text/plain"] = ["a\n", "b"]
    other["outputs"][1]["text"] = ["a\n", "b"]
    assert cell_digest(cell) == cell_digest(other)
    other["outputs"][1]["text"] = ["a\n", "c"]
    assert cell_digest(cell) != cell_digest(other)


def test_a_server_signs_and_says_so_in_answers_and_exports(tmp_path, verify):
    key_file = tmp_path / "key.pem"
    key = SigningKey.made(key_file).id
    options = ("sign_heads=True", f"signing_key={key_file}", "signing_interval=0.1")
    with (
        real_server(tmp_path, *(f"--AgentExecApp.{each}" for each in options)) as server,
        AgentExecClient(server.url, token=server.token) as client,
    ):
        session = client.open_session("analyst")
        assert session.run("1 + 1").text == "2"

        def signed_length() -> int:
            signature = client.session(session.id).info.chain.signature
            return 0 if signature is None else signature.length

        until(lambda: signed_length() >= 4)
        chain_of_answer = session.run("2").execution.chain
        assert chain_of_answer.signature is not None
        assert chain_of_answer.signature.key == key
        notebook = session.export(tmp_path / "export.ipynb")
        session.close()
        until(lambda: signed_length() == client.session(session.id).info.chain.length)
    assert verify(notebook, "--key", key)[0] == 0
    code, report = verify(server.history_dir, "--key", key)
    assert (code, "only hash chains" in report["held"]["told"]) == (0, False)
    assert not (server.history_dir / PRIVATE_KEY).exists()


def test_a_server_says_that_its_record_is_broken_until_a_person_accepts_it(
    tmp_path, verify, capsys, monkeypatch
):
    history, key_file = tmp_path / "history", tmp_path / "key.pem"
    heads = KeptHeads(tmp_path / "kept", history)
    heads.keep({"ledger-1": KeptLedger(end=Chain(head="0" * 63 + "1", length=1))})
    options = (
        "sign_heads=True", f"signing_key={key_file}",
        f"signed_heads={tmp_path / 'kept'}", "signing_interval=0.1",
    )  # fmt: skip
    key = SigningKey.made(key_file).id
    with (
        real_server(tmp_path, *(f"--AgentExecApp.{each}" for each in options)) as server,
        AgentExecClient(server.url, token=server.token) as client,
    ):
        until(lambda: client.status().broken is not None)
        broken = client.approvals().broken
        assert broken is not None
        assert broken.found == ["ledger-1 is gone."]
        monkeypatch.setenv("JUPYTER_AGENT_EXEC_URL", server.url)
        monkeypatch.setenv("JUPYTER_AGENT_EXEC_TOKEN", server.token)
        assert main(["status"]) == 0
        assert f"NOT SIGNED  ledger-1 is gone. ({broken.name})" in capsys.readouterr().out
        assert main(["accept-break", "b_other", "--yes"]) == 4
        assert f"broken in another way: {broken.name}" in capsys.readouterr().err
        assert main(["accept-break", broken.name, "--yes"]) == 0
        assert (client.status().broken, client.approvals().broken) == (None, None)
    capsys.readouterr()
    code, report = verify(history, "--key", key)
    assert (
        code,
        "did not continue what was signed: ledger-1 is gone." in report["held"]["told"],
    ) == (0, True)


_WITHOUT_THE_EXTRA = """
import sys
sys.modules.update(dict.fromkeys(["cryptography", "rfc3161_client"]))
import jupyter_agent_exec.app
from jupyter_agent_exec.cli import main
sys.exit(10 * main(["verify", sys.argv[1]]) + main(["verify", sys.argv[2]]))
"""


def test_without_the_extra_all_but_signatures_is_checked(there, tmp_path):
    history = new_history(tmp_path / "plain")
    history.open_session(opened()).close(closed())
    history.stop()
    words = [str(there), str(tmp_path / "plain")]
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_THE_EXTRA, *words], capture_output=True, text=True
    )
    assert done.returncode == 20
    assert "pip install 'jupyter-agent-exec[signing]'" in done.stderr
    assert "Only hash chains hold it" in done.stdout


def test_sessions_that_have_ended_are_signed_before_the_ledger(tmp_path):
    signing = Signing(tmp_path / "agent_exec", tmp_path / "key.pem")
    try:
        signing.signer.stop()  # nothing is signed now unless it is asked for
        session = signing.history.open_session(opened())
        session.close(closed())
        (journal,) = journals(signing.folder)
        assert not signatures_path(journal).exists()
        signing.sign()
        assert json.loads(signatures_path(journal).read_bytes())[0]["length"] == 2
        assert json.loads(signatures_path(ledger_of(signing.folder)).read_bytes())[0]["length"] == 4
    finally:
        signing.stop()


def test_a_key_that_is_made_as_the_page_says_signs(tmp_path: Path) -> None:
    page = (PROJECT / "docs" / "how-to" / "audit.md").read_text()
    (commands,) = re.findall(r"^```sh\n(openssl genpkey .*?)^```$", page, re.MULTILINE | re.DOTALL)
    made = subprocess.run(
        ["sh", "-ec", commands], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    key = SigningKey(tmp_path / "signing-key.pem")
    public = (tmp_path / "server-key.pub").read_text().splitlines()[1:-1]
    assert (made.stdout.split()[0], "".join(public)) == (key.id, key.public_key)
