"""Kernels that end as they start: it is seen at once, and tried once more."""

from __future__ import annotations

from pathlib import Path

from tests.asking import Agent
from tests.sessions.kernelspecs import install_ending_kernel, install_kernel

COLLIDES = """
import json, pathlib, sys, time
starts = pathlib.Path(sys.argv[1])
if not starts.exists():
    import zmq
    starts.write_text("x")
    connection = json.loads(pathlib.Path(sys.argv[sys.argv.index("-f") + 1]).read_text())
    other = zmq.Context().socket(zmq.PUB)
    met = other.get_monitor_socket(zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_DISCONNECTED)
    other.bind(f"tcp://{connection['ip']}:{connection['shell_port']}")
    met.poll()
    time.sleep(1.5)
    sys.exit("Address already in use")
sys.argv[1:] = sys.argv[2:]
from ipykernel.kernelapp import launch_new_instance
launch_new_instance()
"""
"""At first, what answers on its shell port is another kernel's IOPub, until the kernel has been
asked again whether it is there."""


async def test_a_kernel_that_ends_as_it_starts_is_started_once_more(
    agent: Agent, jp_data_dir: Path
) -> None:
    starts = install_ending_kernel(jp_data_dir, fails=1)
    session = await agent.open(target={"kind": "scratch", "kernel_name": "ends"})
    assert (await agent.run(session, "6 * 7", wait=30))["text"].strip() == "42"
    assert starts.read_text().startswith("xx")


async def test_a_kernel_whose_port_is_another_ones_is_started_once_more(
    agent: Agent, jp_data_dir: Path
) -> None:
    install_kernel(jp_data_dir, "collides", "-c", COLLIDES, str(jp_data_dir / "starts"))
    session = await agent.open(target={"kind": "scratch", "kernel_name": "collides"})
    assert (await agent.run(session, "6 * 7", wait=30))["text"].strip() == "42"


async def test_a_kernel_that_never_starts_is_refused_without_a_wait_for_it(
    agent: Agent, jp_data_dir: Path
) -> None:
    starts = install_ending_kernel(jp_data_dir, fails=99)
    refused = await agent.ask(
        "POST",
        "sessions",
        {"agent": {"name": "a"}, "target": {"kind": "scratch", "kernel_name": "ends"}},
    )
    assert (refused.status, refused.json["code"]) == (503, "kernel_unavailable")
    assert starts.read_text() == "xx"
