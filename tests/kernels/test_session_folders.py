"""Folders of sessions: no link leads a kernel or an upload out of them, whenever it is put there.

Agents that may write in a folder may replace what is in it. Here the tests do that for them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Final, NamedTuple

import httpx2
import pytest

from jupyter_agent_exec.client import Session
from jupyter_agent_exec.errors import AgentExecError
from jupyter_agent_exec.isolation.sandbox import (
    IsolationLimits,
    Sandbox,
    Way,
    argv,
)
from jupyter_agent_exec.kernels.folder import Folder, identity
from tests.isolation.isolation_server import (
    SOON,
    IsolationServer,
    isolation_server,
    prefix_of,
    value,
)
from tests.real_server import TOKEN

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="kernels are isolated on Linux")


class Kernels(NamedTuple):
    """A server, and whether the kernels that are tried there are isolated."""

    here: IsolationServer
    isolated: bool

    @property
    def root(self) -> Path:
        return self.here.server.root_dir

    @property
    def outside(self) -> Path:
        return self.here.folder / "home" / ".ssh"

    def open(self, cwd: str) -> Session:
        return self.here.client.open_session("tester", isolated=self.isolated, cwd=cwd)


@pytest.fixture(scope="module", params=["unshare", "bubblewrap", "not isolated"])
def kernels(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kernels]:
    isolated = request.param != "not isolated"
    way = request.param if isolated else "auto"
    prefix = prefix_of(way) if isolated else ()
    with isolation_server(tmp_path_factory.mktemp("isolation"), way, prefix=prefix) as here:
        (here.folder / "home" / ".ssh" / "same").mkdir()
        yield Kernels(here, isolated)


# -- opening ---------------------------------------------------------------------------------------

LINKS: Final = {
    "link": "../home/.ssh",
    "in-folder/link": "../../home/.ssh",
    "in-folder/within": "../plain",
    "in-folder/hidden": "../.hidden",
    "in-folder/own": "../../data",
}
REFUSED: Final = [
    *LINKS,
    *("link/same", "in-folder/link/same", "in-folder/within/sub", "in-folder/link/../same"),
    *("..", "../home", "plain/../..", "in-folder/../../home/.ssh", "/home/../../home"),
    *(".hidden", "plain/.hidden", "/etc", "/root", "nowhere", "a-file"),
]


def test_no_session_opens_where_a_link_leads_or_out_of_the_root(kernels: Kernels) -> None:
    for made in ("in-folder", "plain/sub", "plain/.hidden", ".hidden"):
        (kernels.root / made).mkdir(parents=True)
    (kernels.root / "a-file").touch()
    for path, to in LINKS.items():
        (kernels.root / path).symlink_to(to)
        assert (kernels.root / path).is_dir()
    answers = {}
    for cwd in REFUSED:
        try:
            kernels.open(cwd)
            answers[cwd] = "opened"
        except AgentExecError as refused:
            answers[cwd] = f"{refused.code}: {refused.detail.get('field')}"
    assert answers == dict.fromkeys(REFUSED, "invalid_request: target.cwd")
    with kernels.open("plain/sub/") as session:
        assert value(session, "import os", "os.getcwd()") == str(kernels.root / "plain" / "sub")


# -- later -----------------------------------------------------------------------------------------


def by_a_link(kernels: Kernels) -> None:
    """Put a link in the folder's place."""
    (kernels.root / "above" / "same").rename(kernels.root / "above" / "moved")
    (kernels.root / "above" / "same").symlink_to(kernels.outside)


def above_by_a_link(kernels: Kernels) -> None:
    """Put a link in the place of the folder above."""
    (kernels.root / "above").rename(kernels.root / "moved")
    (kernels.root / "above").symlink_to(kernels.outside)


def by_a_folder(kernels: Kernels) -> None:
    """Put another folder in the folder's place."""
    (kernels.root / "above" / "same").rename(kernels.root / "above" / "moved")
    (kernels.root / "above" / "same").mkdir()


def by_nothing(kernels: Kernels) -> None:
    """Take the folder away."""
    (kernels.root / "above" / "same").rename(kernels.root / "above" / "moved")


def put_back(kernels: Kernels) -> None:
    """Undo any of these."""
    above, folder = kernels.root / "above", kernels.root / "above" / "same"
    if above.is_symlink():
        above.unlink()
        (kernels.root / "moved").rename(above)
    if (above / "moved").exists():
        if folder.is_symlink():
            folder.unlink()
        elif folder.exists():
            folder.rmdir()
        (above / "moved").rename(folder)


def not_run(session: Session) -> str:
    ran = session.run("1")
    assert ran.execution.reason is not None, ran.text
    assert "target.cwd" in ran.execution.reason
    return ran.status


def restart(kernels: Kernels, session: Session) -> str:
    with pytest.raises(AgentExecError) as refused:
        session.restart()
    return refused.value.code


def death(kernels: Kernels, session: Session) -> str:
    assert session.run("import os; os._exit(0)").status == "kernel_died"
    return not_run(session)


def restarted_by_jupyter(kernels: Kernels, session: Session) -> int:
    kernel = kernels.here.client.session(session.id).info.kernel
    assert kernel is not None
    return httpx2.post(
        f"{kernels.here.server.url}api/kernels/{kernel.id}/restart",
        headers={"Authorization": f"token {TOKEN}"},
        timeout=SOON,
    ).status_code


def restart_by_jupyter(kernels: Kernels, session: Session) -> str:
    assert restarted_by_jupyter(kernels, session) == 500
    return not_run(session)


def files(kernels: Kernels, session: Session) -> str:
    codes = set()
    for ask in (
        lambda: session.upload(b"x", "authorized_keys"),
        lambda: session.upload(b"x", "new/authorized_keys"),
        lambda: session.download("secret"),
        lambda: session.delete_file("secret"),
        lambda: list(session.files()),
    ):
        with pytest.raises(AgentExecError) as refused:
            ask()
        codes.add(refused.value.code)
    assert len(codes) == 1
    return codes.pop()


REPLACES: Final = (by_a_link, above_by_a_link, by_a_folder, by_nothing)


@pytest.mark.parametrize(
    ("kernels", "replace"),
    # What isolates differs only where it mounts the folder: see the last test.
    [*product(("unshare", "not isolated"), REPLACES), ("bubblewrap", by_a_link)],
    indirect=["kernels"],
)
def test_what_takes_a_folders_place_is_not_the_sessions_folder(
    kernels: Kernels, replace: Callable[[Kernels], None]
) -> None:
    folder = kernels.root / "above" / "same"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "mine").touch()
    before = sorted(os.listdir(kernels.outside))
    moments = {
        files: "folder_unknown",
        restart: "kernel_unavailable",
        death: "cancelled",
        restart_by_jupyter: "cancelled",
    }
    with kernels.open("above/same") as session:
        for moment, code in moments.items():
            assert session.run("1").ok
            replace(kernels)
            try:
                assert moment(kernels, session) == code, moment
            finally:
                put_back(kernels)
            assert value(session, "import os", "os.listdir('.')") == ["mine"], moment
            assert [file.path for file in session.files()] == ["mine"]
    assert sorted(os.listdir(kernels.outside)) == before


@pytest.mark.parametrize("kernels", ["unshare"], indirect=True)
def test_a_folder_that_is_swapped_all_the_time_is_the_one_or_none(kernels: Kernels) -> None:
    folder = kernels.root / "above" / "swapped"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "mine").touch()
    is_over = threading.Event()

    def swap() -> None:
        while not is_over.is_set():
            folder.rename(kernels.root / "away")
            folder.symlink_to(kernels.outside)
            folder.unlink()
            (kernels.root / "away").rename(folder)

    swapping = threading.Thread(target=swap)
    swapping.start()
    seen, codes = [], set()
    try:
        for _ in range(40):
            try:
                with kernels.open("above/swapped") as session:
                    seen += value(session, "import os", "os.listdir('.')")
            except AgentExecError as refused:
                codes.add(refused.code)
    finally:
        is_over.set()
        swapping.join()
    assert set(seen) <= {"mine"}
    assert codes <= {"invalid_request", "kernel_unavailable"}


# -- modules in it ---------------------------------------------------------------------------------

PLANTED: Final = (
    *("ipykernel_launcher", "ipykernel", "IPython", "traitlets", "zmq", "comm", "debugpy", "jedi"),
    *("sitecustomize", "usercustomize", "runpy", "random", "json", "pandas", "appnope", "_pydevd"),
)
"""Some that a kernel's start imports, or looks for; some that notebooks import."""

IMPORTS: Final = """
import json, os, random, subprocess, sys
import pandas
import helper
with open('program.py', 'w') as file:
    file.write('import helper; print(helper.name)')
said = subprocess.run([sys.executable, 'program.py'], capture_output=True, text=True).stdout
found = [helper.name, said, sorted(name for name in os.listdir('.') if name.startswith('ran-'))]
"""


def plant(folder: Path) -> None:
    """Put modules into a folder that say so if they are run."""
    folder.mkdir(parents=True)
    for name in PLANTED:
        (folder / f"{name}.py").write_text(f"open('ran-{name}', 'w').close()")
    (folder / "helper.py").write_text("name = __name__")


def test_no_module_in_its_folder_takes_the_place_of_one_that_is_installed(kernels: Kernels) -> None:
    plant(kernels.root / "planted")
    for _ in range(1 if kernels.isolated else 2):  # the second may be a warm one
        with kernels.open("planted") as session:
            assert value(session, IMPORTS) == ["helper", "helper\n", []]
            session.restart()
            assert value(session, IMPORTS) == ["helper", "helper\n", []]
            assert restarted_by_jupyter(kernels, session) == 200
            assert value(session, IMPORTS) == ["helper", "helper\n", []]


@pytest.mark.parametrize("kernels", ["not isolated"], indirect=True)
def test_nor_where_a_kernel_is_started_for_a_notebook(kernels: Kernels) -> None:
    plant(kernels.root / "beside")
    with kernels.here.client.open_session(
        "tester", notebook="beside/a.ipynb", create=True
    ) as session:
        assert value(session, IMPORTS) == ["helper", "helper\n", []]
        assert restarted_by_jupyter(kernels, session) == 200
        assert value(session, IMPORTS) == ["helper", "helper\n", []]


# -- a swap while a kernel starts ------------------------------------------------------------------


@pytest.mark.parametrize("way", ["unshare", "bubblewrap"])
def test_a_folder_replaced_before_its_mount_is_refused(way: Way, tmp_path: Path) -> None:
    """Between the look at a folder and its mount there is a moment that nobody can wait for."""
    prefix = prefix_of(way)
    for name in ("held", "other"):
        (tmp_path / name).mkdir()
    held = identity((tmp_path / "held").stat())
    limits = IsolationLimits(memory_bytes=0, cpu_seconds=0, processes=0, disk_bytes=0)

    sandbox = Sandbox(limits)
    told = {}
    for name in ("held", "other"):
        files = sandbox.files()
        try:
            folder = Folder(tmp_path, (name,), held)
            command = [sys.executable, "-I", "-S", "-c", "print('began')"]
            plan = sandbox.plan(files, folder, command)
            ran = subprocess.run(
                [*prefix, *argv(way, plan)],
                cwd=plan.cwd,
                capture_output=True,
                text=True,
                check=False,
                timeout=SOON,
            )
            told[name] = (ran.stdout, ran.stderr)
        finally:
            files.remove()
    assert told["held"][0] == "began\n", told
    assert told["other"][0] == ""
    assert "another folder has taken its place" in told["other"][1]
