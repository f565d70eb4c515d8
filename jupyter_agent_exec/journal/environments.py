"""What a session's code ran in, made from its journal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..records import EnvironmentFound, PackagesChanged
from ..types import Digest
from .blobs import BlobStore
from .lines import Line, lines


class Environments:
    """The environments of a session's kernels, line by line."""

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs
        self.told: list[dict[str, Any]] = []
        """Each as in an export. An erased one has nothing but its `incarnation` and `changes`."""

    def add(self, line: Line) -> None:
        """Add the next line."""
        entry = line.entry
        if isinstance(entry, EnvironmentFound):
            environment = json.loads(self._text(line, entry.environment) or "{}")
            self.told.append({"incarnation": entry.incarnation, "changes": [], **environment})
        elif isinstance(entry, PackagesChanged) and self.told:
            text = self._text(line, entry.packages)
            packages = None if text is None else text.split("\n")
            change = {"execution_id": entry.execution_id, "packages": packages}
            self.told[-1]["changes"].append(change)

    def _text(self, line: Line, name: Digest) -> str | None:
        data = self._blobs.read(line, name)
        return None if data is None else data.decode("utf-8", "replace")


def requirements(journal: Path, blobs: BlobStore) -> str:
    """Return what was installed at last as a `requirements.txt`; comments say if it is not known.

    Raises
    ------
    OSError
        The journal cannot be read.
    """
    environments = Environments(blobs)
    for line in lines(journal):
        environments.add(line)
    last = environments.told[-1] if environments.told else {}
    reason = last.get("reason") or "The record does not say which packages there were."
    if last.get("packages") is None:
        return f"# {reason}\n"
    installed = set(last["packages"])
    for change in last["changes"]:
        if change["packages"] is None:
            return "# What was installed later was erased from the record.\n"
        installed -= {line[1:] for line in change["packages"] if line[0] == "-"}
        installed |= {line[1:] for line in change["packages"] if line[0] == "+"}
    head = f"# {last['implementation']} {last['version']} on {last['platform']}"
    return "\n".join([head, *sorted(installed), ""])
