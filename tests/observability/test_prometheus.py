"""A real Prometheus scrapes a real server, as docs/how-to/monitoring.md says, for the dashboard."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.observability.test_metrics import DASHBOARD
from tests.ports import free_port
from tests.real_server import PROJECT, TOKEN, until
from tests.server_process import server_process

PROMETHEUS = shutil.which("prometheus")
GUIDE = PROJECT / "docs" / "how-to" / "monitoring.md"
SAMPLES = 3


class Prometheus:
    """A Prometheus that listens."""

    def __init__(self, port: int) -> None:
        self._http = httpx2.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False)

    def ask(self, path: str, **query: str) -> Any:
        answered = self._http.get(f"/api/v1/{path}", params=query)
        assert answered.status_code == 200, (query, answered.text)
        return answered.json()["data"]

    def has_samples(self) -> bool:
        try:
            if self._http.get("/-/ready").status_code != 200:
                return False
        except httpx2.TransportError:  # it does not listen yet
            return False
        found = self.ask("query", query="count_over_time(up[1m]) * up")["result"]
        return bool(found) and float(found[0]["value"][1]) >= SAMPLES

    def close(self) -> None:
        self._http.close()


@pytest.fixture
def prometheus(tmp_path: Path) -> Iterator[Prometheus]:
    """A Prometheus that has scraped a server at which each metric has a value."""
    if PROMETHEUS is None:
        pytest.skip("there is no Prometheus here: make .make/far-sides")
    sink = {"kind": "folder", "path": str(tmp_path / "copies")}
    config = tmp_path / "config" / "jupyter_server_config.py"
    config.parent.mkdir()
    config.write_text(f"c.AgentExecApp.sinks = [{sink}]")
    with server_process(tmp_path) as server:
        session = server.open(target={"kind": "scratch"})
        server.run(session, "print(1)", wait=60)
        assert server.ask("GET", "sessions/none").status_code == 404
        scraped = re.search(r"```yaml\n(scrape_configs:.*?)```", GUIDE.read_text(), re.DOTALL)
        assert scraped is not None
        configuration = tmp_path / "prometheus.yml"
        address = httpx2.URL(server.api).netloc.decode()
        configuration.write_text(
            "global: {scrape_interval: 500ms, scrape_timeout: 500ms}\n"
            + scraped[1].replace("<the server's token>", TOKEN).replace("localhost:8888", address)
        )
        port = free_port()
        process = subprocess.Popen(
            [
                PROMETHEUS,
                f"--config.file={configuration}",
                f"--storage.tsdb.path={tmp_path / 'samples'}",
                f"--web.listen-address=127.0.0.1:{port}",
                "--log.level=warn",
            ],
            stdin=subprocess.DEVNULL,
        )
        started = Prometheus(port)
        try:
            until(started.has_samples)
            yield started
        finally:
            started.close()
            process.terminate()
            process.wait(30)


def test_prometheus_answers_each_question_of_the_dashboard(prometheus: Prometheus) -> None:
    dashboard = json.loads(DASHBOARD.read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    assert asked
    for expression in asked:
        filled = expression.replace("$instance", ".*").replace("$__rate_interval", "1m")
        assert "$" not in filled
        assert prometheus.ask("query", query=filled)["result"], expression
    (_, server) = dashboard["templating"]["list"]
    found = re.fullmatch(r"label_values\((\w+), (\w+)\)", server["query"]["query"])
    assert found is not None
    assert len(prometheus.ask(f"label/{found[2]}/values", **{"match[]": found[1]})) == 1
