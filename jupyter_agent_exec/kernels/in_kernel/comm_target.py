"""A comm target for an IPython kernel, which answers requests while the kernel runs code.

It is sent together with `variable_listing`. Like that, the kernel never imports it, and it runs
none of the user's code. A client opens a comm with a request, and gets the answer. It uses a comm
because a subshell handles nothing else without side effects. An `execute_request` in a subshell
would show and close the figures of the running cell, take away its `input()`, and swallow its last
messages. Any other request would get the output that the cell's threads print.
"""

from __future__ import annotations

import sys
from json import dumps
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .variable_listing import (
        described,
        flags_of,
        index_size,
        is_of,
        module_of,
        named,
        user_variables,
    )

TARGET = "jupyter_agent_exec"
ANSWER = "agent_exec_told"
IS_A_CLASS = 1 << 31
"""Flag of a class whose instances are classes."""
namespace_getter = vars(type)["__dict__"]
namespace_of = namespace_getter.__get__
mro_of = vars(type)["__mro__"].__get__
FUNCTIONS = (FunctionType, type(len), type(str.join), type(object.__str__))


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


def types_of(value: Any) -> tuple[str | None, dict[str, str] | None, str | None]:
    """Return an array's dtype, a table's dtypes by column, and the type of a table's index.

    Like the listing, it reads only types of NumPy and pandas that no user has written.
    """
    kind = type(value)
    root, name = named(kind)[0].partition(".")[0], named(kind)[1]
    if not is_of(root, name, kind) or (root, name) not in TYPED:
        return None, None, None
    try:
        ndarray: Any = vars(sys.modules["numpy"])["ndarray"]
        if root == "numpy":
            return str(ndarray.dtype.__get__(value)), None, None
        axes, blocks = value._mgr.axes, value._mgr.blocks
        if any(index_size(axis, ndarray) is None for axis in axes):
            return None, None, None
        index: str | None = named(type(axes[-1]))[1]
        index = None if index == "RangeIndex" else index
        dtypes = [dtype_of(block.values, ndarray) for block in blocks]
        if name == "Series":
            return dtypes[0], None, index
        columns = names_in(axes[0], ndarray)
        by_place = {
            int(place): dtype
            for block, dtype in zip(blocks, dtypes)  # noqa: B905
            for place in block.mgr_locs.as_array
        }
        return None, {name: by_place[place] for place, name in enumerate(columns)}, index
    except Exception:  # another thread changes the value, or pandas is another version
        return None, None, None


TYPED = (("numpy", "ndarray"), ("pandas", "DataFrame"), ("pandas", "Series"))
MOST_COLUMNS = 100
NAME = 100


def dtype_of(values: Any, ndarray: Any) -> str:
    """Return the dtype of a column; only its type's name if a user may have written it."""
    array = named(type(values))[1]
    is_known = type(values) is ndarray or is_of("pandas.arrays", array, type(values))
    return str(values.dtype)[:NAME] if is_known and array != "Categorical" else array[:NAME]


def names_in(index: Any, ndarray: Any) -> list[str]:
    """Return the first names of a table's columns, each as a text."""
    if named(type(index))[1] == "RangeIndex":
        return [str(n) for n in index._range[:MOST_COLUMNS]]
    held = index._data
    if type(held) is not ndarray:
        held = held._ndarray
    names = list(ndarray.__getitem__(held, slice(MOST_COLUMNS)))
    told = [name if type(name) is str else f"<{named(type(name))[1]}>" for name in names]
    return [name[:NAME].encode("utf-8", "replace").decode() for name in told]


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
    """Return the distributions whose names contain `match`, and how many were left out.

    The name and the version are read from the head of the metadata. To parse all of it would take
    ten times as long.
    """
    from importlib.metadata import distributions

    found: dict[str, Any] = {}
    for distribution in distributions():
        text = distribution.read_text("METADATA") or distribution.read_text("PKG-INFO") or ""
        head = dict.fromkeys(("Name", "Version"), "")
        for line in text.partition("\n\n")[0].splitlines():
            field, _, value = line.partition(":")
            if head.get(field) == "":
                head[field] = value.strip()
        key = head["Name"].casefold().replace("_", "-")
        if key and key not in found:  # of two, the one that is first on the path counts
            names = sorted(module_names(distribution))
            if any(match in name.casefold() for name in (head["Name"], *names)):
                found[key] = [head["Name"], head["Version"], names]
    told = [found[key] for key in sorted(found)]
    return told[:limit], len(told[limit:])


def environment() -> Any:
    """Return the interpreter, the platform, and what is installed, as lines of requirements.

    The folder of a distribution is named for it and its version, so hardly anything is read.
    """
    import os
    import platform
    from json import load

    found: dict[str, str] = {}
    for path in sys.path:
        if type(path) is not str or not os.path.isdir(path or "."):
            continue
        for entry in os.listdir(path or "."):
            stem, _, kind = entry.rpartition(".")
            name, _, version = stem.partition("-")
            name = "-".join(
                filter(None, name.lower().replace("_", "-").replace(".", "-").split("-"))
            )
            if kind not in ("dist-info", "egg-info") or not name.replace("-", "").isalnum():
                continue
            line = f"{name}=={version.partition('-')[0]}" if version else name
            try:
                with open(os.path.join(path, entry, "direct_url.json"), encoding="utf-8") as file:
                    told = load(file)
                vcs = told.get("vcs_info")
                url = f"{vcs['vcs']}+{told['url']}@{vcs['commit_id']}" if vcs else told["url"]
                line = f"{name} @ {url}"
            except (OSError, ValueError, LookupError):
                pass  # it comes from an index, as most do
            found.setdefault(name, line)  # of two, the one that is first on the path counts
    system = platform.uname()
    return {
        "language": "python",
        "version": platform.python_version(),
        "implementation": platform.python_implementation(),
        "interpreter": sys.executable,
        "platform": f"{system.system} {system.release} {system.machine}",
        "packages": [found[name] for name in sorted(found)],
    }


def named_in(namespace: Any) -> dict[str, Any]:
    """Return the items of a namespace whose names are of type `str` exactly."""
    return {item[0]: item[1] for item in list(namespace.items()) if type(item[0]) is str}


def members(value: Any) -> dict[str, Any]:
    """Return the attributes of a value that can be read without running its code.

    They include the attributes of its class. A property is returned as a property.
    """
    if type(value) is ModuleType:
        return named_in(vars(value))
    is_class = bool(flags_of(type(value)) & IS_A_CLASS)
    found: dict[str, Any] = {}
    for each in reversed(mro_of(value if is_class else type(value))):
        found |= named_in(namespace_of(each))
    getter: Any = found.get("__dict__")
    if not is_class and type(getter) is type(namespace_getter):
        own = getter.__get__(value)
        if type(own) is dict:
            found |= named_in(own)
    return found


def kind_of(value: Any) -> str:
    """Return the type of a completion's value, in IPython's words."""
    if flags_of(type(value)) & IS_A_CLASS:
        return "class"
    if type(value) is ModuleType:
        return "module"
    is_function = any(type(value) is kind for kind in FUNCTIONS)
    return "function" if is_function else "instance"


def names(code: str, cursor_pos: int, limit: int) -> Any:
    """Return the completions at a position in code, without running any code.

    They are the names in variables, modules, classes and instances. Nothing is imported or
    evaluated, no property is read, and no `__getattr__` or `__dir__` is called.
    """
    import builtins
    from keyword import kwlist

    start = cursor_pos
    while start and (code[start - 1].isalnum() or code[start - 1] in "_."):
        start -= 1
    *chain, prefix = code[start:cursor_pos].split(".")
    user_ns = sys.modules["IPython"].get_ipython().user_ns
    scope = named_in(vars(builtins)) | (named_in(user_ns) if type(user_ns) is dict else {})
    found = {**dict.fromkeys(kwlist, names), **scope} if not chain else scope
    for name in chain:
        if name not in found:
            return [], cursor_pos, 0
        found = members(found[name])
    told = sorted(
        (name, "keyword" if value is names else kind_of(value))
        for name, value in found.items()
        if name.startswith(prefix) and (prefix or name[:1] != "_")
    )
    return told[:limit], cursor_pos - len(prefix), len(told[limit:])


def what(value: Any) -> str:
    """Return what a value is: `module pandas`, `class datetime.date`, `instance builtins.list`."""
    kind = type(value)
    if kind is ModuleType:
        return f"module {vars(value).get('__name__')}"
    if kind is FunctionType or kind is type(len):
        return f"function {value.__module__}.{value.__qualname__}"
    if flags_of(kind) & IS_A_CLASS:
        return f"class {'.'.join(named(value))}"
    return f"instance {'.'.join(named(kind))}"


def described_names(names: list[str]) -> Any:
    """Return what each of these names is, as far as the user's namespace has it."""
    shell = sys.modules["IPython"].get_ipython()
    there, hidden = named_in(shell.user_ns), named_in(shell.user_ns_hidden)
    return {
        name: what(there[name])
        for name in names
        if name in there and there[name] is not hidden.get(name, names)
    }


def completions(code: str, cursor_pos: int) -> Any:
    """Return the kernel's reply to a `complete_request`."""
    try:
        return sys.modules["IPython"].get_ipython().kernel.do_complete(code, cursor_pos)
    except Exception:  # IPython's completer fails for some texts, such as a single form feed
        return {"matches": [], "cursor_start": cursor_pos, "cursor_end": cursor_pos}


def documentation(code: str, cursor_pos: int, detail_level: int) -> Any:
    """Return the kernel's reply to an `inspect_request`."""
    kernel = sys.modules["IPython"].get_ipython().kernel
    try:
        return kernel.do_inspect(code, cursor_pos, detail_level)
    except Exception:  # such as an object that fails when it is inspected
        return {"found": False}


QUESTIONS: dict[str, Any] = {
    "variables": variables,
    "packages": packages,
    "environment": environment,
    "names": names,
    "described_names": described_names,
    "complete": completions,
    "inspect": documentation,
}


def opened(comm: Any, message: Any) -> None:
    """Answer the request that a comm was opened with, and forget the comm.

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


def stay() -> None:
    """Register the target, so that comms of our name are answered."""
    kernel = sys.modules["IPython"].get_ipython().kernel
    kernel.comm_manager.register_target(TARGET, opened)
