"""What is lost between a server and its gateway: output, the connection, the gateway itself."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.client.cutting_proxy import CuttingProxy
from tests.gateway.gateways import Gateway, Person, ended, kernel_gateway, server_at
from tests.server_process import Gate, ServerProcess

LIMITS = ("--ZMQChannelsWebsocketConnection.iopub_msg_rate_limit=100",)
RETRIES = ("--GatewayClient.gateway_retry_interval=0.2", "--GatewayClient.gateway_retry_max=8")


HEADERS = ('--GatewayClient.headers={"X-Team": "blue"}',)

BEFORE = "print('be' + 'fore', flush=True)\n"


class Far(NamedTuple):
    gateway: Gateway
    network: CuttingProxy
    server: ServerProcess


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Far]:
    """A gateway with limits that a busy machine exceeds too, behind a network that can be cut."""
    there, here = (tmp_path_factory.mktemp(name) for name in ("there", "here"))
    with (
        kernel_gateway(there, *LIMITS) as gateway,
        CuttingProxy(gateway.url) as network,
        server_at(network.url, here, *RETRIES) as server,
    ):
        yield Far(gateway, network, server)


@pytest.fixture
def session(far: Far) -> Iterator[str]:
    opened = far.server.open(target={"kind": "scratch"})
    yield opened
    far.server.ask("POST", f"sessions/{opened}/close")


def begun(far: Far, session: str, source: str) -> str:
    """Submit code, and return its execution's id."""
    answered = far.server.run(session, source, wait=0)
    assert answered.status_code in (201, 202), answered.text
    return str(answered.json()["id"])


def until_printed(far: Far, execution: str, text: str) -> None:
    """Wait until the server has this output."""
    with far.server.ask_stream(f"executions/{execution}/stream") as lines:
        next(line for line in lines if text in line)


def test_output_that_the_gateway_drops_is_told(far: Far, session: str) -> None:
    flood = "for i in range(10_000): print(i, flush=True)"
    done = far.server.run(session, flood, wait=60).json()
    assert (done["status"], done["outputs_complete"]) == ("ok", False)
    assert "iopub_msg_rate_limit" in done["reason"]
    assert "rate exceeded" not in done["text"], "that is the gateway's, not the code's"
    after = far.server.run(session, "1 + 1", wait=60).json()
    assert (after["text"], after["outputs_complete"]) == ("2", True)


def test_code_that_ends_while_the_network_is_cut_keeps_its_end(
    far: Far, session: str, tmp_path: Path
) -> None:
    gate = Gate(tmp_path, "cut")
    execution = begun(
        far,
        session,
        f"{BEFORE}{gate.here}{gate.wait}print('meanwhile')\n7",
    )
    gate.until_it_is_here()
    until_printed(far, execution, "before")
    kernel = far.server.get(f"sessions/{session}")["kernel"]["id"]
    far.network.cut()
    _until(far, kernel, connections=0)  # it throws away what it still sends to the old connection
    gate.let_it_on()
    far.network.mend()
    done = ended(far.server, execution)
    assert (done["status"], done["outputs_complete"]) == ("ok", False)
    assert "connection to the gateway broke" in done["reason"]
    assert done["text"].startswith("before\nmeanwhile\n7")
    assert far.server.run(session, "1 + 1", wait=60).json()["outputs_complete"] is True


def test_code_whose_end_was_lost_is_settled_by_asking_the_kernel(
    far: Far, session: str, tmp_path: Path
) -> None:
    gate, lost = Gate(tmp_path, "cut"), Gate(tmp_path, "lost")
    ran = begun(
        far,
        session,
        f"{BEFORE}{gate.here}{gate.wait}runs = 1\n{lost.here}",
    )
    kernel = far.server.get(f"sessions/{session}")["kernel"]["id"]
    gate.until_it_is_here()
    until_printed(far, ran, "before")
    with Person(far.gateway.url, kernel):  # with another client there, a gateway holds nothing back
        far.network.cut()
        gate.let_it_on()
        lost.until_it_is_here()
        _until(far, kernel, execution_state="idle")
        far.network.mend()
        done = ended(far.server, ran)
    assert (done["status"], done["outputs_complete"]) == ("lost", False)
    assert done["text"].startswith("before")
    after = far.server.run(session, "runs", wait=60).json()
    assert (after["status"], after["text"], after["kernel"]["restarted"]) == ("ok", "1", False)


def _until(far: Far, kernel: str, **state: object) -> None:
    """Wait until the gateway's model of a kernel has these values."""
    while not state.items() <= next(k for k in far.gateway.kernels() if k["id"] == kernel).items():
        pass


def test_code_submitted_while_the_network_is_cut_runs_once(far: Far, session: str) -> None:
    assert far.server.run(session, "runs = 0", wait=60).json()["status"] == "ok"
    far.network.cut()
    execution = begun(far, session, "runs += 1\nruns")
    far.network.mend()
    assert ended(far.server, execution)["status"] in ("ok", "lost")
    after = far.server.run(session, "runs", wait=60).json()
    assert after["text"] in ("0", "1")


def test_an_agent_waits_for_a_persons_cell_across_a_break(far: Far, tmp_path: Path) -> None:
    gate = Gate(tmp_path, "cell")
    notebook = {"kind": "notebook", "path": "shared.ipynb", "create": True}
    session = far.server.open(target=notebook)
    assert far.server.run(session, "1", wait=60).json()["status"] == "ok"
    kernel = far.server.get(f"sessions/{session}")["kernel"]["id"]
    with Person(far.gateway.url, kernel) as person:
        cell = person.begins(f"{gate.here}{gate.wait}mine = 1")
        gate.until_it_is_here()
        far.network.cut()
        far.network.mend()
        waiting = far.server.run(session, "mine", wait=3).json()
        assert waiting["status"] == "queued"
        gate.let_it_on()
        person.until("execute_reply", cell)
        done = ended(far.server, waiting["id"])
    assert (done["status"], done["text"], done["outputs_complete"]) == ("ok", "1", True)
    far.server.ask("POST", f"sessions/{session}/close")


def test_a_kernel_that_the_gateway_ends_without_a_word_is_told(
    far: Far, session: str, tmp_path: Path
) -> None:
    gate = Gate(tmp_path, "stopped")
    execution = begun(far, session, f"{BEFORE}{gate.here}{gate.wait}")
    gate.until_it_is_here()
    kernel = far.server.get(f"sessions/{session}")["kernel"]["id"]
    process = far.gateway.kernel(kernel)
    process.suspend()  # it can neither answer nor say goodbye
    far.gateway.http.delete(f"kernels/{kernel}")
    done = ended(far.server, execution)
    assert (done["status"], "does not have it any more" in done["reason"]) == ("kernel_died", True)


def test_a_gateway_that_is_killed_and_started_again_gives_new_kernels(
    far: Far, session: str, tmp_path: Path
) -> None:
    gate = Gate(tmp_path, "killed")
    execution = begun(far, session, f"{BEFORE}{gate.here}{gate.wait}")
    gate.until_it_is_here()
    until_printed(far, execution, "before")
    far.gateway.kill()
    far.gateway.start()
    done = ended(far.server, execution)
    assert (done["status"], done["outputs_complete"]) == ("kernel_died", False)
    assert done["text"].startswith("before")
    after = far.server.run(session, "1 + 1", wait=60).json()
    assert (after["status"], after["kernel"]["reason"]) == ("ok", "died")


def test_a_gateway_is_reached_with_certificates(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    names = ["-subj", "/CN=gateway", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", str(key), "-out", str(certificate)]
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *names, *files]
    subprocess.run(make, check=True, capture_output=True)
    (tmp_path / "there").mkdir()
    (tmp_path / "here").mkdir()
    options = (
        f"--GatewayClient.ca_certs={certificate}",
        f"--GatewayClient.client_cert={certificate}",
        f"--GatewayClient.client_key={key}",
    )
    with (
        kernel_gateway(
            tmp_path / "there",
            f"--KernelGatewayApp.certfile={certificate}",
            f"--KernelGatewayApp.keyfile={key}",
        ) as gateway,
        server_at(f"https://127.0.0.1:{gateway.port}", tmp_path / "here", *options) as server,
    ):
        done = server.run(server.open(target={"kind": "scratch"}), "6 * 7", wait=60).json()
        assert (done["status"], done["text"]) == ("ok", "42")


def test_a_gateway_behind_a_proxy_with_a_path_gets_the_headers(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "here").mkdir()
    with (
        kernel_gateway(tmp_path / "there", "--KernelGatewayApp.base_url=/team/") as gateway,
        CuttingProxy(f"{gateway.url}/team") as proxy,
        server_at(proxy.url, tmp_path / "here", *HEADERS) as server,
    ):
        done = server.run(server.open(target={"kind": "scratch"}), "6 * 7", wait=60).json()
        assert (done["status"], done["text"]) == ("ok", "42")
        sent = proxy.sent.decode("latin-1")
    sockets = [head for head in sent.split("\r\n\r\n") if "Upgrade: websocket" in head]
    assert sockets
    assert all("X-Team: blue" in head for head in sockets)
