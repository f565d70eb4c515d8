"""The client's own code, in words that work here."""

from __future__ import annotations

from pathlib import Path

from jupyter_agent_exec.aca.manager import as_run_here

FOLDER = Path("/tmp/it's a folder")
PACKAGES = "\nimport pkg_resources\n[d.project_name for d in pkg_resources.working_set]\n"


def test_the_folder_of_azure_is_the_sessions() -> None:
    asked = "import os; os.chdir('/mnt/data')"
    assert as_run_here(asked, FOLDER) == f"import os; os.chdir({str(FOLDER)!r})"
    assert as_run_here(asked, None) == asked


def test_packages_are_listed_without_what_is_not_everywhere() -> None:
    source = as_run_here(PACKAGES, FOLDER)
    assert "pkg_resources" not in source
    listed = eval(source.splitlines()[-1], {"importlib": __import__("importlib.metadata")})
    assert "jupyter_server" in listed
    assert listed == sorted(listed)


def test_all_other_code_is_run_as_it_is() -> None:
    for source in (
        "",
        " x = 1\n",
        "import os; os.chdir('/mnt/data') # and more",
        "import os; os.chdir('/mnt/data')\nprint(1)",
        f"{PACKAGES}\nprint(1)",
    ):
        assert as_run_here(source, FOLDER) == source
