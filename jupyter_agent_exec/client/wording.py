"""Where an execution stands, in words for people."""

from __future__ import annotations

from typing import Final

from ..models import Document, TokenRef, WaitingFor
from ..types import Via

_THROUGH: Final[dict[Via, str]] = {
    "collaboration": "through the live document",
    "tab": "through a JupyterLab tab",
    "contents": "through the file",
}

_QUOTES: Final = str.maketrans(dict.fromkeys("“”„‟", "'"))


def quoted(words: str) -> str:
    """Return what a program says of itself, in quotation marks that it cannot close."""
    return f"“{words.translate(_QUOTES)}”"


def credential(token: TokenRef | None) -> str:
    """Return with what an agent came: the label that a person gave its token, or their own."""
    return "full access" if token is None else token.label


def waiting(behind: WaitingFor) -> str:
    """Return behind whom an execution waits, as the end of a sentence about it."""
    if behind.who == "kernel":
        return "waits for the kernel"
    if behind.who == "approval":
        return "waits for approval in JupyterLab (or by `jupyter agent-exec approve`)"
    if behind.who == "pause":
        return "waits, since a person has paused all agents"
    since = "" if behind.since is None else f", which began at {behind.since[11:19]} UTC"
    if behind.who == "agent":
        called = "" if behind.agent is None else f" that calls itself {quoted(behind.agent)}"
        return f"waits behind an execution of an agent{called}{since}"
    return f"waits behind a cell that somebody runs{since}"


def placed(document: Document) -> str:
    """Return what became of an execution's cell in a notebook."""
    if document.status == "discarded":
        return f"no cell in {document.path}: {document.reason or 'a person took it out'}"
    if document.status == "not_written":
        return f"no cell in {document.path}: {document.reason or 'it was not written'}"
    through = "" if document.via is None else f" {_THROUGH[document.via]}"
    if document.status == "writing":
        return f"on its way into {document.path}{through}"
    cell = f"cell {document.cell_id} in {document.path}{through}"
    if document.outputs == "held":
        return f"{cell}, active outputs held back until a person accepts them"
    return cell if document.outputs == "inert" else f"{cell}, outputs {document.outputs}"
