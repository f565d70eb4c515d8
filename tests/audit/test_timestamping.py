"""The commands of audit.md that have a signed head timestamped, with an authority of openssl's."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.audit.rewriting import write_anew
from tests.audit.test_signing import write
from tests.real_server import PROJECT

AUTHORITY = """
openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=ca -keyout ca.key -out tsa-ca.pem
openssl req -newkey rsa:2048 -nodes -subj /CN=authority -keyout tsa.key -out tsa.csr
openssl x509 -req -in tsa.csr -CA tsa-ca.pem -CAkey ca.key -days 1 -extfile tsa.cnf -out tsa.pem
"""
CONFIGURATION = """\
extendedKeyUsage = critical, timeStamping
[ tsa ]
default_tsa = authority
[ authority ]
serial = serial
signer_cert = tsa.pem
signer_key = tsa.key
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256
"""
REPLY = "openssl ts -reply -config tsa.cnf -queryfile head.tsq -out head.tsr"


def shell(commands: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-ec", commands], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.fixture
def documented(tmp_path: Path) -> list[str]:
    """The blocks of the page: how to ask for a timestamp, and how to verify it."""
    page = (PROJECT / "docs" / "how-to" / "audit.md").read_text()
    section = page.partition("## Have it timestamped\n")[2].partition("\n## ")[0]
    ours = f"{shlex.quote(sys.executable)} -m jupyter_agent_exec.cli verify --history agent_exec"
    return [
        re.sub("^curl .*", REPLY, block, flags=re.MULTILINE)
        .replace("~/.local/share/jupyter/", "")
        .replace("jupyter agent-exec verify", ours)
        for block in re.findall(r"^```sh\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    ]


def test_a_signed_head_is_timestamped_and_a_history_written_anew_is_found(
    documented: list[str], tmp_path: Path
) -> None:
    (tmp_path / "tsa.cnf").write_text(CONFIGURATION)
    (tmp_path / "serial").write_text("01\n")
    made = shell(AUTHORITY, tmp_path)
    assert made.returncode == 0, made.stderr
    history = tmp_path / "agent_exec"
    write(history, tmp_path / "key.pem", 2)
    shell("openssl pkey -in key.pem -pubout -out server-key.pub", tmp_path)
    ask, verify = documented
    asked = shell(ask, tmp_path)
    assert asked.returncode == 0, asked.stderr
    verified = shell(verify, tmp_path)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert "Verification: OK" in verified.stdout
    assert "Signed by key" in verified.stdout

    write_anew(history)
    assert "The known head is in none of the chains" in shell(verify, tmp_path).stdout
    head = tmp_path / "head.json"
    head.write_bytes(head.read_bytes().replace(b"Z", b"z", 1))
    assert shell(verify, tmp_path).returncode != 0
