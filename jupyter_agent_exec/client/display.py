"""Text for users' terminals: outputs of kernels, and states of executions.

Do not trust the output of code. Control characters can move the cursor, overwrite earlier text,
change the window's title or, in some terminals, enter text as if the user had typed it.
"""

from __future__ import annotations

import re
from typing import Final

from ..models import Document, Execution, TokenRef, WaitingFor
from ..text.lookalikes import exact
from ..types import Via, is_made_up

_SEQUENCES: Final = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)"  # OSC, DCS, SOS, PM, APC, when they end
    r"|\x1b[ -/]+[0-~]"  # character sets
)

_SHOWN: Final[dict[int, str]] = {
    # C0 except tab and line feed, and DEL: shown as control pictures.
    **{code: chr(0x2400 + code) for code in range(0x20) if code not in (0x09, 0x0A)},
    0x7F: "\u2421",
    # C1, which some terminals obey, and characters that reorder or hide text.
    **{code: f"\\x{code:02x}" for code in range(0x80, 0xA0)},
    **{
        code: f"\\u{code:04x}"
        for code in (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
    },
    0x2028: "\n",
    0x2029: "\n",
}

_THROUGH: Final[dict[Via, str]] = {
    "collaboration": "through the live document",
    "tab": "through a JupyterLab tab",
    "contents": "through the file",
}

_QUOTES: Final = str.maketrans(dict.fromkeys("“”„‟", "'"))


def plain(text: str) -> str:
    """Return `text` without escape sequences and with visible control characters.

    Tabs and line ends stay, and CR LF becomes a line end. A single carriage return becomes visible,
    so that later text cannot overwrite earlier text; `terminal.clean` applies it instead. Lone
    surrogates become U+FFFD.
    """
    text = _SEQUENCES.sub("", text).replace("\r\n", "\n").translate(_SHOWN)
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def one_line(text: str, width: int) -> str:
    """Return `text` on one line of at most `width` characters."""
    flat = " ".join(plain(text).split())
    return flat if len(flat) <= width else flat[: max(width - 1, 0)] + "…"


def quoted(words: str) -> str:
    """Return a name that a program chose in quotation marks that the name cannot close."""
    return f"“{words.translate(_QUOTES)}”"


def credential(token: TokenRef | None) -> str:
    """Return the label of an agent's token, or words for a user's own credential."""
    return "full access" if token is None else token.label


def person(name: str) -> str:
    """Return a user's name; words for a user whom the server does not know by name."""
    return "the user" if is_made_up(name) else exact(name)


def said(execution: Execution) -> list[str]:
    """Return what its agent says about an execution, in sentences."""
    purpose = None if execution.claim is None else execution.claim.purpose
    return [] if purpose is None else [f"It says why: {quoted(exact(purpose))}"]


def waiting(behind: WaitingFor, execution_id: str) -> str:
    """Return the reason why an execution waits, as the end of a sentence."""
    if behind.who == "kernel":
        return "waits for the kernel"
    if behind.who == "approval":
        return f"needs approval: in JupyterLab, or by `jupyter agent-exec approve {execution_id}`"
    if behind.who == "pause":
        return "waits: all agents are paused; `jupyter agent-exec resume` lets them go on"
    since = "" if behind.since is None else f", which began at {behind.since[11:19]} UTC"
    if behind.who == "agent":
        called = "" if behind.agent is None else f" that calls itself {quoted(behind.agent)}"
        return f"waits behind an execution of an agent{called}{since}"
    return f"waits behind a cell that somebody runs{since}"


def placed(document: Document) -> str:
    """Return a sentence about the state of an execution's cell in a notebook."""
    if document.status in ("not_written", "discarded"):
        return f"no cell in {document.path}: {document.reason or 'it was not written'}"
    through = "" if document.via is None else f" {_THROUGH[document.via]}"
    if document.status == "proposed":
        return f"proposed in {document.path}, which has nothing of it yet"
    if document.status == "writing":
        return f"on its way into {document.path}{through}"
    cell = f"cell {document.cell_id} in {document.path}{through}"
    if document.outputs == "held":
        return f"{cell}, active outputs held back until a person accepts them"
    return cell if document.outputs == "inert" else f"{cell}, outputs {document.outputs}"
