"""Exports a session as an RO-Crate or as PROV, from its notebook and its raw record.

RO-Crate: https://www.researchobject.org/ro-crate, with the profile Process Run Crate.
PROV-JSON: https://www.w3.org/submissions/prov-json. Both need the extra `provenance`.
"""

from __future__ import annotations

import importlib.util
import json
import re
import tempfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any, Final, Literal

from ..client import Session
from ..counts import counted
from ..errors import BlobNotFound
from .usage import UsageError

Format = Literal["ro-crate", "prov"]

PROCESS_RUN: Final = "https://w3id.org/ro/wfrun/process/0.5"
NAMESPACE: Final = "urn:jupyter-agent-exec:"

_NAME: Final = re.compile(r'"([0-9a-f]{64})"')

_MODULES: Final[dict[Format, str]] = {"ro-crate": "rocrate", "prov": "prov"}


def write(path: Path, session: Session, format: Format) -> None:
    """Write a session in a format.

    Raises
    ------
    UsageError
        The library that it needs is not installed.
    """
    if importlib.util.find_spec(_MODULES[format]) is None:
        raise UsageError(
            f"--format {format} needs the package {_MODULES[format]}: "
            "pip install 'jupyter-agent-exec[provenance]'"
        )
    with tempfile.TemporaryDirectory() as folder:
        notebook = session.export(Path(folder) / "session.ipynb").read_bytes()
    if format == "prov":
        write_prov(path, notebook)
        return

    def read_blob(digest: str) -> bytes | None:
        try:
            return session.blob(digest)
        except BlobNotFound:
            return None

    write_ro_crate(path, notebook, session.journal(), session.requirements(), read_blob)


class Recorded:
    """What an export says about a session, read from its notebook.

    Parameters
    ----------
    notebook
        The session's exported notebook, not a clean one.
    """

    def __init__(self, notebook: dict[str, Any]) -> None:
        about = notebook["metadata"]["agent_exec"]
        self.session: dict[str, Any] = about["session"]
        self.chain: dict[str, Any] = about["chain"]
        environments: list[dict[str, Any]] = about.get("environments", [])
        self.environment: dict[str, Any] = environments[0] if environments else {}
        self.cells: list[dict[str, Any]] = notebook["cells"]

    @property
    def interpreter(self) -> str:
        """The program that ran the code, with its version."""
        told = (self.environment.get(name) for name in ("implementation", "version"))
        return " ".join(filter(None, told)) or "kernel"

    @property
    def agent(self) -> str:
        """The agent's name, with its model."""
        agent = self.session["agent"]
        return f"{agent['name']} ({agent['model']})" if agent.get("model") else str(agent["name"])


class _Blobs:
    """The payloads that a journal names and that are not on its lines."""

    def __init__(self, journal: bytes) -> None:
        self.mimetypes: dict[str, str] = {}
        """By name. Some are hashes of something else, and no server has them."""
        self.of_execution: dict[str, list[str]] = {}
        for text in journal.splitlines():
            line = json.loads(text)
            entry = line["entry"]
            known = {blob["sha256"]: blob["mimetype"] for blob in entry.get("blobs", [])}
            there = self.of_execution.setdefault(entry.get("execution_id"), [])
            for name in _NAME.findall(json.dumps(entry)):
                if name not in line.get("payloads", {}):
                    self.mimetypes[name] = known.get(name, "application/octet-stream")
                    there.append(name)


def write_ro_crate(
    path: Path,
    notebook: bytes,
    journal: bytes,
    requirements: str,
    read_blob: Callable[[str], bytes | None],
) -> None:
    """Write a session as an RO-Crate: a folder, or a file if the path ends in `.zip`.

    It holds the notebook, the requirements, and the raw record with its large payloads, which
    `verify` checks where they are.

    Parameters
    ----------
    read_blob
        Returns a large payload; None if it was erased.
    """
    from rocrate.model import ContextEntity, Person
    from rocrate.rocrate import ROCrate

    told = Recorded(json.loads(notebook))
    session = told.session
    crate = ROCrate()

    def add(id: str, type: str | list[str], **properties: object) -> Any:
        return crate.add(ContextEntity(crate, id, properties={"@type": type, **properties}))

    def add_file(dest: str, data: bytes, mimetype: str, **properties: object) -> Any:
        said = {"encodingFormat": mimetype, "contentSize": str(len(data)), **properties}
        return crate.add_file(BytesIO(data), dest, properties=said)

    crate.name = session["title"] or f"Session {session['id']}"
    crate.description = f"What the agent {told.agent} ran in Jupyter, for {session['username']}."
    profile = add(PROCESS_RUN, "CreativeWork", name="Process Run Crate", version="0.5")
    crate.root_dataset["conformsTo"] = profile
    head = add(
        "#chain-head",
        "PropertyValue",
        name=f"Head of the record's hash chain, after {counted(told.chain['length'], 'entry')}",
        propertyID="sha256",
        value=told.chain["head"],
    )
    crate.root_dataset["identifier"] = head
    person = crate.add(Person(crate, "#person", properties={"name": session["username"]}))
    agent = add("#agent", "SoftwareApplication", name=told.agent)
    kernel = add(
        "#kernel",
        "SoftwareApplication",
        name=told.interpreter,
        softwareVersion=told.environment.get("version", "unknown"),
        operatingSystem=told.environment.get("platform", "unknown"),
    )
    crate.root_dataset["author"] = person
    cells = add_file(
        "session.ipynb", notebook, "application/x-ipynb+json", name="All that ran, with its outputs"
    )
    packages = add_file("requirements.txt", requirements.encode(), "text/plain", name="Packages")
    kernel["softwareRequirements"] = packages
    add_file("journal.jsonl", journal, "application/jsonl", name="The raw record")
    blobs, files = _Blobs(journal), {}
    for name, mimetype in blobs.mimetypes.items():
        data = read_blob(name)
        if data is not None:
            files[name] = add_file(f"blobs/{name}", data, mimetype, name="Payload")
    actions = []
    for cell in told.cells:
        ran = cell["metadata"]["agent_exec"]
        if ran["started_at"] is None:
            continue
        source = add(
            f"#source-{cell['id']}",
            "SoftwareSourceCode",
            name=f"Source of execution {ran['seq']}",
            text=cell["source"],
        )
        named = blobs.of_execution.get(ran["execution_id"], [])
        results = [files[name] for name in dict.fromkeys(named) if name in files]
        actions.append(
            add(
                f"#{ran['execution_id']}",
                "CreateAction",
                name=f"Execution {ran['seq']}: {ran['status']}",
                startTime=ran["started_at"],
                **({"endTime": ran["finished_at"]} if ran["finished_at"] else {}),
                **({"error": ran["reason"]} if ran.get("reason") else {}),
                actionStatus="http://schema.org/"
                + ("CompletedActionStatus" if ran["status"] == "ok" else "FailedActionStatus"),
                instrument=[kernel, agent],
                agent=person,
                object=source,
                result=[cells, *results],
            )
        )
    crate.root_dataset["mentions"] = actions
    (crate.write_zip if path.suffix == ".zip" else crate.write)(path)


def write_prov(path: Path, notebook: bytes) -> None:
    """Write a session as PROV-JSON: who ran what, in which order, and what came of it."""
    from prov.model import ProvDocument

    told = Recorded(json.loads(notebook))
    session = told.session
    document = ProvDocument()
    document.add_namespace("agentexec", NAMESPACE)

    def id(name: str) -> str:
        return f"agentexec:{name}"

    person = document.agent(
        id("person"), {"prov:type": "prov:Person", "prov:label": session["username"]}
    )
    agent = document.agent(
        id("agent"), {"prov:type": "prov:SoftwareAgent", "prov:label": told.agent}
    )
    document.actedOnBehalfOf(agent, person)
    record = document.entity(
        id(session["id"]),
        {
            "prov:label": session["title"] or session["id"],
            id("chain_head"): told.chain["head"],
            id("chain_length"): told.chain["length"],
        },
    )
    document.wasAttributedTo(record, agent)
    texts = {id(name): text for name, text in told.environment.items() if isinstance(text, str)}
    environment = document.entity(id("environment"), {"prov:label": told.interpreter} | texts)
    before: dict[int | None, Any] = {}
    for cell in told.cells:
        ran = cell["metadata"]["agent_exec"]
        if ran["started_at"] is None:
            continue
        activity = document.activity(
            id(ran["execution_id"]),
            ran["started_at"],
            ran["finished_at"],
            {"prov:label": f"Execution {ran['seq']}", id("status"): ran["status"]},
        )
        source = document.entity(
            id(f"source-{ran['execution_id']}"),
            {"prov:value": cell["source"], id("sha256"): ran["source_sha256"]},
        )
        document.used(activity, source)
        document.used(activity, environment)
        document.wasAssociatedWith(activity, agent)
        if (last := before.get(ran["incarnation"])) is not None:
            document.wasInformedBy(activity, last)  # by the variables that it left
        before[ran["incarnation"]] = activity
        for name in ("revises", "restores"):
            if ran.get(name):
                other = id(f"source-{ran[name]}")
                document.wasDerivedFrom(source, other, activity)
        outputs = document.entity(
            id(f"outputs-{ran['execution_id']}"),
            {"prov:value": json.dumps(cell["outputs"]), id("entry_hash"): ran["entry_hash"] or ""},
        )
        document.wasGeneratedBy(outputs, activity, ran["finished_at"])
        document.hadMember(record, outputs)
    document.serialize(path, format="json", indent=1)
