"""The script that finds a browser for the tests, or brings one."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "browser"

STARTS = "echo Chromium 156"
FAILS = "exit 1"


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder that is all there is to find programs in, with nothing that is a browser."""
    for name in ("bash", "cat", "chmod", "dirname", "env"):
        found = shutil.which(name)
        assert found is not None
        (tmp_path / name).symlink_to(found)
    program(tmp_path, "id", "echo 0")
    program(tmp_path, "jlpm", f'echo "$@" >> {tmp_path}/playwright')
    return tmp_path


def program(folder: Path, name: str, does: str) -> Path:
    path = folder / name
    path.write_text(f"#!/usr/bin/env bash\n{does}\n")
    path.chmod(0o755)
    return path


def find(programs: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": str(programs), **environment}
    return subprocess.run([SCRIPT], env=env, capture_output=True, text=True, check=False)


def apt_that_installs(programs: Path, does: str, *packages: str) -> None:
    """Have apt install a program for each of these packages, and fail to install others."""
    program(
        programs,
        "apt-get",
        f'echo "$@" >> {programs}/apt; [ "$1" = install ] || exit 0\n'
        f'case "$3" in {"|".join(packages)}) ;; *) exit 100 ;; esac\n'
        f"path={programs}/$3; echo '#!/usr/bin/env bash' > $path; echo '{does}' >> $path\n"
        "chmod +x $path",
    )


def test_a_browser_that_is_installed_is_taken(programs: Path) -> None:
    chrome = program(programs, "google-chrome", STARTS)
    assert find(programs).stdout == f"{chrome}\n"


def test_one_that_does_not_start_is_passed_over(programs: Path) -> None:
    program(programs, "chromium-browser", FAILS)
    chrome = program(programs, "google-chrome", STARTS)
    assert find(programs).stdout == f"{chrome}\n"


def test_one_that_is_named_goes_first(programs: Path) -> None:
    program(programs, "chromium", STARTS)
    mine = program(programs, "mine", STARTS)
    assert find(programs, CHROMIUM_PATH=str(mine)).stdout == f"{mine}\n"


def test_one_that_is_named_and_is_not_there_is_an_error(programs: Path) -> None:
    program(programs, "chromium", STARTS)
    done = find(programs, CHROMIUM_PATH=os.devnull)
    assert (done.returncode, done.stdout) == (1, "")
    assert "CHROMIUM_PATH" in done.stderr


def test_apt_brings_one_without_windows_where_there_is_none(programs: Path) -> None:
    apt_that_installs(programs, STARTS, "chromium-headless-shell", "chromium")
    assert find(programs).stdout == f"{programs}/chromium-headless-shell\n"
    assert (programs / "apt").read_text() == "update\ninstall --yes chromium-headless-shell\n"


def test_apt_brings_a_whole_one_where_it_knows_no_other(programs: Path) -> None:
    apt_that_installs(programs, STARTS, "chromium")
    assert find(programs).stdout == f"{programs}/chromium\n"


def test_apt_is_left_alone_without_the_right_to_use_it(programs: Path) -> None:
    apt_that_installs(programs, STARTS, "chromium")
    program(programs, "id", "echo 1000")
    program(programs, "sudo", FAILS)
    assert find(programs).stdout == ""
    assert not (programs / "apt").exists()


@pytest.mark.parametrize("apt", [None, FAILS])
def test_playwright_brings_its_own_where_apt_cannot(programs: Path, apt: str | None) -> None:
    if apt is not None:
        apt_that_installs(programs, apt, "chromium")
    done = find(programs)
    assert (done.returncode, done.stdout) == (0, "")
    assert (programs / "playwright").read_text() == "playwright install chromium\n"
