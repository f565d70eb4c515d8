"""What an execution came to, as lagent's `ActionReturn`."""

from __future__ import annotations

import ast
import base64
import inspect
import io
import os
import re
from pathlib import Path
from typing import Any, Final, TypeVar
from uuid import uuid4

import json5
from IPython.core.inputtransformer2 import TransformerManager
from lagent.actions.base_action import BaseAction
from lagent.actions.parser import BaseParser, ParseError
from lagent.schema import ActionReturn, ActionStatusCode

from ...client import AsyncSession, Result, Step
from ...errors import InvalidRequest, KernelNotOwned
from ...terminal import clean
from ..kernel_session import KernelSession, SessionOptions, SessionTarget
from ..result_pieces import (
    Picture,
    Raised,
    Stream,
    changed_note,
    end_note,
    omitted_note,
    pieces,
    state_note,
)


def told(name: str, command: str, result: Result, work_dir: str) -> ActionReturn:
    """Return what code came to; its images are written into the folder if it ran to its end."""
    text, pictures = _read(result)
    answer = ActionReturn({"text": command}, type=name)
    if not result.ok:
        answer.errmsg = text
        answer.state = ActionStatusCode.API_ERROR
        return answer
    answer.result = [
        {"type": "text", "content": text},
        *({"type": "image", "content": saved(each, work_dir)} for each in pictures),
    ]
    return answer


def refused(name: str, command: str, error: Exception) -> ActionReturn:
    """Return why code was not run, or why its images cannot be written."""
    wrong = isinstance(error, InvalidRequest)
    return ActionReturn(
        {"text": command},
        type=name,
        errmsg=str(error),
        state=ActionStatusCode.ARGS_ERROR if wrong else ActionStatusCode.API_ERROR,
    )


def _read(result: Result) -> tuple[str, list[Picture]]:
    text = ""
    pictures = []
    for piece in pieces(result):
        if isinstance(piece, Stream):
            text += piece.text
        elif isinstance(piece, Raised):
            text += escape_ansi(piece.traceback)
        else:
            # What is shown as an image is not told in words too, but for a value.
            if piece.text is not None and (piece.is_result or piece.picture is None):
                text += piece.text
            if piece.picture is not None:
                pictures.append(piece.picture)
    if after := _notes_after(result):
        text = "\n".join([*([text.removesuffix("\n")] if text else []), *after])
    return "".join(f"{note}\n" for note in _notes_before(result)) + text, pictures


def _notes_before(result: Result) -> list[str]:
    return [note for note in (state_note(result), changed_note(result)) if note is not None]


def _notes_after(result: Result) -> list[str]:
    end = end_note(result)
    if end is not None and result.status == "timed_out":
        end = f"Timeout. {end}"
    return [note for note in (omitted_note(result), end) if note is not None]


_PNG: Final = b"\x89PNG\r\n\x1a\n"


def saved(picture: Picture, work_dir: str) -> str:
    """Write a picture into the folder, which is made if it is gone; return its path there."""
    os.makedirs(work_dir, exist_ok=True)
    return os.path.join(work_dir, picture.save(Path(work_dir), str(uuid4())).name)


def publish_image_to_local(image_base64: str, work_dir: str = "./work_dir/tmp_dir") -> str:
    """Write an image as PNG into a folder, and return its path.

    Parameters
    ----------
    image_base64
        Of any type that Pillow reads.
    work_dir
        The folder; it is made if it is not there.

    Raises
    ------
    ValueError
        It is not base64.
    OSError
        It is no image, or cannot be written.
    """
    data = base64.b64decode(image_base64)
    if not data.startswith(_PNG):
        from PIL import Image

        converted = io.BytesIO()
        Image.open(io.BytesIO(data)).save(converted, "png")
        data = converted.getvalue()
    return saved(Picture(mimetype="image/png", data=data), work_dir)


_FENCED: Final = re.compile(r"```[^\n]*\n(.+?)```", re.DOTALL)
_SPAN: Final = re.compile(r"`([^`]*)`")


def extract_code(text: str) -> str:
    """Return the code in a text.

    It is the first fenced block, else the first span in single backticks, else what a JSON object
    has under ``code``, else the whole.
    """
    marked = _FENCED.search(text) or _SPAN.search(text)
    return _code_in_json(text) if marked is None else marked.group(1)


def code_in(command: str) -> str:
    """Return the code to run: what is Python, or IPython's, is left alone with its backticks."""
    return _code_in_json(command) if _is_python(command) else extract_code(command)


def escape_ansi(line: str) -> str:
    """Return a text without its escape sequences."""
    return clean(line)


def get_multiline_input(hint: str) -> str:
    """Read lines from standard input until it ends, after a hint, and return them as one text."""
    print(hint)  # noqa: T201 - it asks a person in a terminal
    print("Enter begins a new line, Ctrl-D ends the input.")  # noqa: T201
    lines = []
    while True:
        try:
            lines.append(input())
        except EOFError:
            return "\n".join(lines)


def _code_in_json(text: str) -> str:
    # Python has the same braces: the object that a model wrote is no code of its own. To read what
    # is no object, however long, would take json5 a while.
    if not text.lstrip().startswith(("{", "/")):
        return text
    try:
        code = json5.loads(text)["code"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return text
    return code if isinstance(code, str) else text


def _is_python(text: str) -> bool:
    try:
        transform = TransformerManager().transform_cell  # type: ignore[no-untyped-call]
        ast.parse(transform(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def arguments(action: BaseAction, inputs: Any, name: str) -> dict[str, Any] | ActionReturn:
    """Return the arguments that a model wrote for an action, or what is wrong with them.

    lagent's own `BaseAction.__call__` reads them with `_parser` too, and runs the action at once.
    """
    given = {"inputs": inputs, "name": name}
    if name != "run":
        return ActionReturn(
            given,
            type=action.name,
            errmsg=f"invalid API: {name}",
            state=ActionStatusCode.API_ERROR,
        )
    try:
        parsed: dict[str, Any] = action._parser.parse_inputs(inputs, name)
    except ParseError as error:
        message = error.err_msg
    except TypeError:  # JSON, but a number or null
        message = f"invalid arguments: {inputs}"
    else:
        return parsed
    return ActionReturn(given, type=action.name, errmsg=message, state=ActionStatusCode.ARGS_ERROR)


def step(command: Any, timeout: Any, default: float) -> Step:
    """Return the code to run, and for how many seconds it may.

    Raises
    ------
    InvalidRequest
        `command` is no text, or `timeout` no number.
    """
    seconds = default if timeout is None else timeout
    for name, value, kinds, what in (
        ("command", command, str, "text"),
        ("timeout", seconds, (int, float), "a number of seconds"),
    ):
        if not isinstance(value, kinds):
            raise InvalidRequest(
                f"{name}: Expected {what}, got {type(value).__name__}.", field=name
            )
    return Step(source=code_in(command), timeout=seconds)


Action = TypeVar("Action", bound=type[BaseAction])


def named_as_its_class(action: Action) -> Action:
    """Have models and executors know an action by its class's name.

    lagent's registry does not: it has one action for a name, and that is lagent's own.
    """
    action.__tool_description__["name"] = action.__name__
    return action


_CAN_BE_DISABLED: Final = "enable" in inspect.signature(BaseAction.__init__).parameters
"""Whether lagent is one before 0.5."""


def base_arguments(
    description: dict[str, Any] | None, parser: type[BaseParser], enable: bool
) -> dict[str, Any]:
    """Return what lagent's `BaseAction` is made with; since 0.5 an action cannot be disabled."""
    known: dict[str, Any] = {"description": description, "parser": parser}
    return {**known, "enable": enable} if _CAN_BE_DISABLED else known


START_CODE: Final = """
def input(*args, **kwargs):
    raise NotImplementedError("Python input() function is disabled.")

get_ipython().system = lambda *args: print("Assume we have this package, ! is disabled!")
{}
"""
"""Where the braces are, the code goes that changes the folder."""


def folder_code(user_data_dir: str) -> str:
    """Return code that goes to the parent folder of the user's data; none if there is none.

    Parameters
    ----------
    user_data_dir
        Where the kernel runs; ``ENV`` for what ``USER_DATA_DIR`` says.
    """
    if user_data_dir == "ENV":
        user_data_dir = os.environ.get("USER_DATA_DIR", "")
    folder = os.path.dirname(user_data_dir)
    return f"import os\nos.chdir({folder!r})" if folder else ""


def workplace(where: SessionTarget, agent: str | None, change_folder: str) -> KernelSession:
    """Return where an interpreter's code runs.

    A kernel of a person's is left as it is: only our own starts with `START_CODE`.
    """
    init_source = START_CODE.format(change_folder) if where.is_scratch else None
    return KernelSession(where, SessionOptions(agent=agent or "lagent", init_source=init_source))


def reset_source(place: KernelSession, change_folder: str) -> str:
    """Return code that forgets all variables and starts anew.

    Raises
    ------
    KernelNotOwned
        They are a person's.
    """
    if not place.where.is_scratch:
        raise KernelNotOwned(
            "The kernel is a person's, with their variables: it is not reset. "
            "Delete by name what your code has made."
        )
    reset = "get_ipython().run_line_magic('reset', '-f')\n"
    return reset + START_CODE.format(change_folder)


async def restarted(session: AsyncSession) -> None:
    """Get a fresh kernel, which starts with `START_CODE` too."""
    await session.restart()
