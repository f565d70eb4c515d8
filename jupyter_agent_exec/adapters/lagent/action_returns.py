"""Turns the results of executions into lagent's `ActionReturn`."""

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

from ...client import Result, Step
from ...errors import InvalidRequest, KernelNotOwned
from ...text.terminal import clean
from ..kernel_session import KernelSession, SessionOptions, Target
from ..result_pieces import (
    Picture,
    RaisedException,
    Stream,
    changed_note,
    end_note,
    omitted_note,
    pieces,
    state_note,
)


def told(name: str, command: str, result: Result, work_dir: str) -> ActionReturn:
    """Return the result of code. If it succeeded, save its images in `work_dir`."""
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
    """Return the result for code that was not run, or whose images cannot be written."""
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
        elif isinstance(piece, RaisedException):
            text += escape_ansi(piece.traceback)
        else:
            # The text of an image is included only if it is the value of an expression.
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
    """Save a picture in the folder, and return its path. Make the folder if it is missing."""
    os.makedirs(work_dir, exist_ok=True)
    return os.path.join(work_dir, picture.save(Path(work_dir), str(uuid4())).name)


def publish_image_to_local(image_base64: str, work_dir: str = "./work_dir/tmp_dir") -> str:
    """Write an image as PNG into a folder, and return its path.

    Parameters
    ----------
    image_base64
        An image of any type that Pillow reads.
    work_dir
        The folder. It is made if it is missing.

    Raises
    ------
    ValueError
        `image_base64` is not valid base64.
    OSError
        The data is not an image, or the file cannot be written.
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

    This is the first fenced block, else the first span in single backticks, else the ``code`` of a
    JSON object, else the whole text.
    """
    marked = _FENCED.search(text) or _SPAN.search(text)
    return _code_in_json(text) if marked is None else marked.group(1)


def code_in(command: str) -> str:
    """Return the code to run. Valid Python or IPython code stays unchanged, backticks included."""
    return _code_in_json(command) if _is_python(command) else extract_code(command)


def escape_ansi(line: str) -> str:
    """Return a text without its escape sequences."""
    return clean(line)


def get_multiline_input(hint: str) -> str:
    """Print a hint, read standard input to its end, and return it as one text."""
    print(hint)  # noqa: T201 - for a user in a terminal
    print("Enter begins a new line, Ctrl-D ends the input.")  # noqa: T201
    lines = []
    while True:
        try:
            lines.append(input())
        except EOFError:
            return "\n".join(lines)


def _code_in_json(text: str) -> str:
    # The caller tries Python first, which also has braces. Only what may be an object is parsed,
    # because json5 is slow with long texts.
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
    """Return the arguments that a model wrote for an action, or an error about them.

    lagent's `BaseAction.__call__` also reads them with `_parser`, but runs the action at once.
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
    """Return the step that runs code with a timeout in seconds.

    Raises
    ------
    InvalidRequest
        `command` is not text, or `timeout` is not a number.
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
    """Give an action the name of its class, for models and executors.

    The action is not in lagent's registry, where the name belongs to lagent's own action.
    """
    action.__tool_description__["name"] = action.__name__
    return action


_CAN_BE_DISABLED: Final = "enable" in inspect.signature(BaseAction.__init__).parameters
"""Whether lagent is older than 0.5."""


def base_arguments(
    description: dict[str, Any] | None, parser: type[BaseParser], enable: bool
) -> dict[str, Any]:
    """Return the arguments of lagent's `BaseAction`. Since 0.5, an action cannot be disabled."""
    known: dict[str, Any] = {"description": description, "parser": parser}
    return {**known, "enable": enable} if _CAN_BE_DISABLED else known


START_CODE: Final = """
def input(*args, **kwargs):
    raise NotImplementedError("Python input() function is disabled.")

get_ipython().system = lambda *args: print("Assume we have this package, ! is disabled!")
{}
"""
"""The code that a kernel starts with. The braces stand for the code that changes the folder."""


def folder_code(user_data_dir: str) -> str:
    """Return code that changes to the parent folder of `user_data_dir`; empty if that is not set.

    Parameters
    ----------
    user_data_dir
        The folder of the user's data; ``ENV`` for the value of ``USER_DATA_DIR``.
    """
    if user_data_dir == "ENV":
        user_data_dir = os.environ.get("USER_DATA_DIR", "")
    folder = os.path.dirname(user_data_dir)
    return f"import os\nos.chdir({folder!r})" if folder else ""


def workplace(target: Target, agent: str | None, change_folder: str) -> KernelSession:
    """Return the session of an interpreter.

    Only a scratch kernel starts with `START_CODE`; a user's kernel is not changed.
    """
    init_source = START_CODE.format(change_folder) if target.is_scratch else None
    return KernelSession(target, SessionOptions(agent=agent or "lagent", init_source=init_source))


def reset_step(place: KernelSession, change_folder: str, timeout: float) -> Step:
    """Return the step that deletes all variables and runs `START_CODE` again.

    Raises
    ------
    KernelNotOwned
        The kernel belongs to a user.
    """
    if not place.target.is_scratch:
        raise KernelNotOwned(
            "The kernel is a person's, with their variables: it is not reset. "
            "Delete by name what your code has made."
        )
    source = "get_ipython().run_line_magic('reset', '-f')\n" + START_CODE.format(change_folder)
    return Step(source=source, timeout=timeout)
