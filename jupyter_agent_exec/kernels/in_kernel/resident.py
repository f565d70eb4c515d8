"""Reads variables, values and packages in an IPython kernel, which never imports it.

The server sends this code once in a kernel's life. It stays there as the target of a comm, outside
every namespace of the user. The `user_expressions` of a request call its functions `look` and
`evaluate` after the request's code. Any other question is a comm that a client opens, so that a
subshell can answer while the kernel runs code. A subshell handles nothing else without side
effects: an `execute_request` there would show and close the figures of the running cell, take away
its `input()`, and swallow its last messages; any other request would get the output that the cell's
threads print.

Only `evaluate` runs code that a user or an agent wrote. All else must not. So it does not call
`len` or `repr` of a value, and reads no `__class__` or other attribute that a class could override.
It reads only exact built-in types, by their own methods, and public members of a few types of
well-known libraries. It compares values and types by identity, because a metaclass may even define
`==` and `hash`. One exception: a table of such a library may hold an array of a type that a user
wrote, and asks that for its `dtype` or `shape`.

A look compares identity and type of every variable with those of the look before. What a variable
holds is read too, as far as there is room: all of it, or else its size and a sample. What was not
read whole, and shows no change, is counted as not compared.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from json import dumps, loads
from types import FunctionType, ModuleType
from typing import Any

from .arrays import module_of, types_of
from .json_values import evaluate
from .namespace import IS_A_CLASS, described, flags_of, look, user_variables

TARGET = "jupyter_agent_exec"
ANSWER = "agent_exec_told"


def is_shown(value: Any) -> bool:
    """Return whether a variable holds something of the user's, rather than an import."""
    kind = type(value)
    if kind is FunctionType:
        return bool(value.__module__ == "__main__")
    if flags_of(kind) & IS_A_CLASS:
        return bool(module_of(value) == "__main__")
    return kind is not ModuleType and kind is not type(len)


def variables(match: str, limit: int) -> Any:
    """Return the variables whose names contain `match`, and how many were left out."""
    found = [
        item for item in user_variables() or () if match in item[0].casefold() and is_shown(item[1])
    ]
    found.sort(key=lambda item: item[0])
    told = [[*described(name, value)[:5], *types_of(value)] for name, value in found[:limit]]
    return told, len(found[limit:])


def distributions() -> dict[str, tuple[str, str, Any]]:
    """Return name, version and distribution by normalized name.

    The name and the version are read from the head of the metadata. To parse all of it would take
    ten times as long.
    """
    from importlib import metadata

    found: dict[str, tuple[str, str, Any]] = {}
    for distribution in metadata.distributions():
        text = distribution.read_text("METADATA") or distribution.read_text("PKG-INFO") or ""
        head = dict.fromkeys(("Name", "Version"), "")
        for line in text.partition("\n\n")[0].splitlines():
            field, _, value = line.partition(":")
            if head.get(field) == "":
                head[field] = value.strip()
        key = re.sub(r"[-_.]+", "-", head["Name"]).lower()
        if key:  # of two, the one that is first on the path counts
            found.setdefault(key, (head["Name"], head["Version"], distribution))
    return found


def module_names(distribution: Any) -> set[str]:
    """Return the names under which a distribution can be imported."""
    told = distribution.read_text("top_level.txt")
    if told is not None:
        return set(told.split())
    names = set()
    for line in (distribution.read_text("RECORD") or "").splitlines():
        parts = line.partition(",")[0].split("/")
        name, _, suffix = parts[0].partition(".")
        is_module = len(parts) > 1 and not suffix
        is_module = is_module or suffix == "py" or suffix.endswith((".so", ".pyd"))
        if is_module and name.isidentifier() and not name.startswith("__"):
            names.add(name)
    return names


def packages(match: str, limit: int) -> Any:
    """Return the distributions whose names contain `match`, and how many were left out."""
    told = []
    for _, (name, version, distribution) in sorted(distributions().items()):
        names = sorted(module_names(distribution))
        if any(match in each.casefold() for each in (name, *names)):
            told.append([name, version, names])
    return told[:limit], len(told[limit:])


def requirements() -> Iterator[str]:
    """Yield what is installed, as lines of requirements."""
    for key, (_, version, distribution) in sorted(distributions().items()):
        line = f"{key}=={version}" if version else key
        try:
            told = loads(distribution.read_text("direct_url.json") or "")
            vcs = told.get("vcs_info")
            url = f"{vcs['vcs']}+{told['url']}@{vcs['commit_id']}" if vcs else told["url"]
            yield f"{key} @ {url}"
        except (ValueError, LookupError):  # it comes from an index, as most do
            yield line


def environment() -> Any:
    """Return the interpreter, the platform, and what is installed."""
    import platform

    system = platform.uname()
    return {
        "language": "python",
        "version": platform.python_version(),
        "implementation": platform.python_implementation(),
        "interpreter": sys.executable,
        "platform": f"{system.system} {system.release} {system.machine}",
        "packages": list(requirements()),
    }


QUESTIONS: dict[str, Any] = {
    "variables": variables,
    "packages": packages,
    "environment": environment,
}


def opened(comm: Any, message: Any) -> None:
    """Answer the question that a comm was opened with, and forget the comm.

    Meanwhile, the output of other threads still belongs to the same cell as before.
    """
    shell = sys.modules["IPython"].get_ipython()
    asked = message["content"]["data"]
    if asked["behind"]["msg_id"]:
        shell.set_parent({"header": asked["behind"]})
    kernel = shell.kernel
    # As if the other side had closed it: at its end a comm sends a `comm_close` to all frontends.
    kernel.comm_manager.comm_close(None, None, {"content": {"comm_id": comm.comm_id}})
    try:
        answer = {"told": dumps(QUESTIONS[asked["question"]](**asked["given"]))}
    except Exception as error:
        answer = {"ename": type(error).__name__, "evalue": str(error)[:1000]}
    kernel.send_response(kernel.iopub_socket, ANSWER, answer)


def register() -> None:
    """Let this code stay in the kernel, as the target of comms of our name."""
    vars(opened).update(look=look, evaluate=evaluate)
    kernel = sys.modules["IPython"].get_ipython().kernel
    kernel.comm_manager.register_target(TARGET, opened)
