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

A look is quick rather than thorough. It identifies a large value by identity, size and a sample, so
it may miss a change in the middle of the value.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from json import dumps, loads
from math import isfinite
from reprlib import Repr
from time import thread_time
from types import FunctionType, ModuleType
from typing import Any

TARGET = "jupyter_agent_exec"
ANSWER = "agent_exec_told"
VARIABLES_SOURCE = "agent_exec"
VALUES_SOURCE = "agent_exec_values"
"""Source names of the payloads in a reply."""

MOST_NAMES = 1_000
MOST_CHARACTERS = 60_000
MOST_SECONDS = 0.002
"""Seconds of processor time, so that a busy machine does not change the result."""
PREVIEW = 80
ITEMS = 40
"""The most items of a collection, or columns of a table, to read."""
PARTS = 120
"""The most parts of a variable's value to read: the items of all its nested collections."""
DEPTH = 3
SAMPLES = 128
WHOLE_BYTES = 8_192
"""An array of up to this many bytes is read whole; a larger one is sampled."""
MOST_EACH = MOST_ALL = 1_000_000
"""Characters of one value as JSON, and of all values."""
MOST_REPR = 10_000
MOST_DEPTH = 40
MOST_NODES = 500_000
"""The most values to read within one value."""
MOST_BITS = 10_000
ROWS = 10
COLUMNS = 100
NAME = 100
MOST_CELL = 200
RANGE_ITEMS = 10_000_000
"""An array with more is not searched for its range."""

BRACKETS = {
    id(list): (list, "[", "]"),
    id(tuple): (tuple, "(", ")"),
    id(dict): (dict, "{", "}"),
    id(set): (set, "{", "}"),
    id(frozenset): (frozenset, "frozenset({", "})"),
}
PLAIN = {id(kind) for kind in (int, float, bool, complex, str, bytes, type(None))}
SIZED = ((1 << 25, list), (1 << 26, tuple), (1 << 27, bytes), (1 << 28, str), (1 << 29, dict))
"""Flags of the classes that inherit from these types, and with them their length."""
IS_A_CLASS = 1 << 31
"""Flag of a class whose instances are classes."""
TABLES = {
    "numpy": ("ndarray",),
    "pandas": ("DataFrame", "Series"),
    "polars": ("DataFrame", "Series"),
    "torch": ("Tensor",),
    "xarray": ("DataArray",),
}
NUMBERS = ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool")
"""Scalar types of NumPy, with a safe `repr`."""

flags_of = vars(type)["__flags__"].__get__
module_of = vars(type)["__module__"].__get__
qualname_of = vars(type)["__qualname__"].__get__
mro_of = vars(type)["__mro__"].__get__

short = Repr()
short.maxlevel = 6
short.maxdict = short.maxlist = short.maxtuple = short.maxset = short.maxfrozenset = 100
short.maxstring = short.maxlong = short.maxother = 2_000


def named(kind: Any) -> tuple[str, str]:
    """Return the module and the qualified name of a class, with any metaclass."""
    module, name = module_of(kind), qualname_of(kind)
    return (module if type(module) is str else "?"), (name if type(name) is str else "?")


def is_of(library: str, name: str, kind: Any) -> bool:
    """Return whether a class is the one in its library, rather than one that claims its name."""
    module = sys.modules.get(library)
    return type(module) is ModuleType and vars(module).get(name) is kind


def table_type(kind: Any) -> tuple[str, str]:
    """Return library and name of an array's or a table's class; empty if it is none we know."""
    module, name = named(kind)
    library = module.partition(".")[0]
    if name in TABLES.get(library, ()) and is_of(library, name, kind):
        return library, name
    return "", ""


def is_number(kind: Any) -> bool:
    """Return whether a class is a scalar type of NumPy."""
    module, name = named(kind)
    return module == "numpy" and name in NUMBERS and is_of("numpy", name, kind)


def cut(text: Any, most: int) -> tuple[str, bool]:
    """Return the start of a text as it can be encoded, and whether something was cut off."""
    text = str.__str__(text)
    told = text if len(text) <= most else text[: most - 1] + "…"
    return told.encode("utf-8", "replace").decode(), len(text) > most


# -- arrays and tables -----------------------------------------------------------------------------


def sampled(array: Any) -> str:
    """Return the fingerprint of a NumPy array, from its memory, or from a part if it is large."""
    base, sample = array.base, 0
    if base is None or (type(base) is type(array) and base.base is None):  # else maybe on a disk
        if array.nbytes <= WHOLE_BYTES:
            return f"{array.dtype.str} {hash(array.tobytes())}"
        sample = hash(array.flat[:: array.size // SAMPLES + 1].tobytes())
    place = array.__array_interface__["data"][0]  # its `id` would be that of a view
    return f"{place} {sample}"


def has_known(dtypes: Any) -> bool:
    """Return whether all dtypes are NumPy's or pandas' own."""
    dtype: Any = vars(sys.modules["numpy"])["dtype"]
    kinds = {id(type(each)): type(each) for each in dtypes}.values()
    return all(
        any(base is dtype for base in mro_of(kind)) or is_of("pandas", named(kind)[1], kind)
        for kind in kinds
    )


def size_of(index: Any) -> int | None:
    """Return the length of an index of pandas; None unless all of it is pandas' own."""
    is_own = is_of("pandas", named(type(index))[1], type(index))
    return len(index) if is_own and has_known([index.dtype]) else None


def dtypes_of(value: Any) -> list[Any]:
    """Return the dtypes of a table's columns, or of a series."""
    return list(value.dtypes) if len(value.axes) > 1 else [value.dtype]


def pandas_table(value: Any) -> tuple[Any, str]:
    """Return the shape and the fingerprint of a table or a series of pandas."""
    parts: list[Any] = [id(axis) for axis in value.axes]
    if has_known(dtypes_of(value)):
        columns = [(None, value)] if len(value.axes) == 1 else islice(value.items(), ITEMS)
        for _, column in columns:
            array = column.array
            name = named(type(array))[1]
            if name in ("NumpyExtensionArray", "PandasArray"):
                parts.append(sampled(array.to_numpy()))
            elif name in ("DatetimeArray", "TimedeltaArray", "PeriodArray"):
                parts.append(sampled(array.asi8))
            else:
                parts.append(id(array))
    sizes = [size_of(axis) for axis in value.axes]
    return (None if None in sizes else sizes), f"{parts}"


def table(value: Any, kind: Any) -> tuple[Any, str]:
    """Return the shape and the fingerprint of an array or a table of a well-known library."""
    library, _ = table_type(kind)
    if library == "pandas":
        return pandas_table(value)
    if library:
        return value.shape, (sampled(value) if library == "numpy" else "")
    size = size_of(value) if named(kind)[1].endswith("Index") else None
    return (None if size is None else [size]), ""


def types_of(value: Any) -> tuple[str | None, dict[str, str] | None, str | None]:
    """Return an array's dtype, a table's dtypes by column, and the type of a table's index."""
    library, name = table_type(type(value))
    try:
        if library == "numpy":
            return str(value.dtype), None, None
        if library != "pandas" or None in [size_of(axis) for axis in value.axes]:
            return None, None, None
        index: str | None = named(type(value.index))[1]
        index = None if index == "RangeIndex" else index
        dtypes = [
            str(each)[:NAME] if has_known([each]) else named(type(each))[1][:NAME]
            for each in dtypes_of(value)[:COLUMNS]
        ]
        if name == "Series":
            return dtypes[0], None, index
        names = [
            cut(str(each) if id(type(each)) in PLAIN else f"<{named(type(each))[1]}>", NAME)[0]
            for each in islice(value.columns, COLUMNS)
        ]
        return None, dict(zip(names, dtypes)), index  # noqa: B905
    except Exception:  # another thread changes the value, or pandas is another version
        return None, None, None


# -- variables -------------------------------------------------------------------------------------


def plain(value: Any, kind: Any) -> tuple[str | None, str]:
    """Return the preview and the fingerprint of a plain value."""
    if kind is str or kind is bytes:
        shown, size = repr(value[: PREVIEW + 1]), len(value)
        if size <= PREVIEW:
            return shown, shown
        return shown, f"{size} {hash(value) if size <= 50_000 else id(value)}"
    if kind is int and value.bit_length() > 400:
        return None, f"{value.bit_length()} {id(value)}"
    shown = repr(value)
    return shown, shown


def items_of(value: Any, kind: Any) -> Any:
    """Return some of a collection's items: the first, and in a long list others too."""
    if kind is dict:
        return [part for item in islice(dict.items(value), ITEMS) for part in item]
    if kind is list or kind is tuple:
        more = value[ITEMS :: len(value) // ITEMS] if len(value) > ITEMS else ()
        return [*value[:ITEMS], *more]
    return list(islice(value, ITEMS))


def collected(value: Any, kind: Any, depth: int, parts: list[int]) -> tuple[str, str]:
    """Return the preview and the fingerprint of a built-in collection.

    `parts` is how many items may still be read.
    """
    _, opening, closing = BRACKETS[id(kind)]
    texts: list[str] = []
    known = [str(len(value))] if len(value) <= ITEMS else [f"{len(value)} {id(value)}"]
    room = PREVIEW
    for item in items_of(value, kind):
        its = type(item)
        parts[0] -= 1
        if id(its) in PLAIN:
            text, print_ = plain(item, its)
        elif id(its) in BRACKETS and depth > 1 and parts[0] > 0:
            text, print_ = collected(item, its, depth - 1, parts)
        else:
            text, print_ = None, str(id(item))
        known.append(print_)
        if room > 0:
            texts.append(f"<{named(its)[1]}>" if text is None else text)
            room -= len(texts[-1]) + 2
    if kind is dict:
        texts = [": ".join(pair) for pair in zip(texts[::2], texts[1::2])]  # noqa: B905
    shown = ", ".join(texts)
    if room > 0 and len(value) > ITEMS:
        shown += ", …"
    if kind is tuple and len(value) == 1:
        shown += ","
    if not value and (kind is set or kind is frozenset):
        return f"{kind.__name__}()", "0"
    return f"{opening}{shown}{closing}", ",".join(known)


def described(name: str, value: Any) -> list[Any]:
    """Return a variable's name, type, shape, length and preview, and its value's fingerprint."""
    kind = type(value)
    module, qualname = named(kind)
    type_name = qualname if module in ("builtins", "__main__") else f"{module}.{qualname}"
    type_name = cut(type_name, 200)[0]
    shape, length, preview, known = None, None, None, f"{id(value)}"
    try:
        if id(kind) in PLAIN:
            preview, known = plain(value, kind)
        elif id(kind) in BRACKETS:
            preview, known = collected(value, kind, DEPTH, [PARTS])
        elif is_number(kind):
            preview = known = repr(value)
        else:
            shape, by = table(value, kind)
            known = by or known
        if shape is not None:
            shape = [int(size) for size in shape]
        else:
            flags = flags_of(kind)
            length = next((base.__len__(value) for flag, base in SIZED if flags & flag), None)
            if kind is set or kind is frozenset:
                length = len(value)
    except Exception:  # another thread changes the value, or a library has another version
        shape, length, preview = None, None, None
    if preview is not None:
        preview = cut(preview, PREVIEW)[0]
    return [name, type_name, shape, length, preview, hash((type_name, known, f"{shape}{length}"))]


def user_variables() -> list[tuple[str, Any]] | None:
    """Return the names that ``%who`` would list, oldest first; None if that is unknown.

    So IPython's own names, and names that begin with an underscore, are left out.
    """
    shell = sys.modules["IPython"].get_ipython()
    hidden = shell.user_ns_hidden
    if type(shell.user_ns) is not dict:
        return None
    return [
        item
        for item in list(shell.user_ns.items())
        if type(item[0]) is str
        and item[0][:1] != "_"
        and item[0].isidentifier()
        and (item[0] not in hidden or hidden[item[0]] is not item[1])
    ]


def look() -> None:
    """Add the variables to the reply, newest first."""
    names = user_variables()
    if names is None:
        return
    begun = thread_time()
    variables: list[Any] = []
    room = MOST_CHARACTERS
    for name, value in reversed(names):
        if len(variables) == MOST_NAMES or room < 0 or thread_time() - begun > MOST_SECONDS:
            break
        variables.append(described(name[:200], value))
        room -= len(name) + 120 + len(variables[-1][1]) + len(variables[-1][4] or "")
    tell(VARIABLES_SOURCE, variables=dumps([len(names), variables]))


def tell(source: str, **payload: str) -> None:
    """Add a payload to the reply."""
    shell = sys.modules["IPython"].get_ipython()
    shell.payload_manager.write_payload({"source": source, **payload})


# -- values: these run the user's code -------------------------------------------------------------


class NoJSON(Exception):
    """A value is not JSON."""


class TooLarge(Exception):
    """A value is too large to be returned whole."""


def as_json(value: Any) -> dict[str, Any]:
    """Return a value that is exactly JSON; raise NoJSON or TooLarge otherwise."""
    told: dict[str, Any] = {"status": "ok", "json": value}
    if is_number(type(value)):
        told = {"status": "ok", "json": value.item(), "type": named(type(value))[1]}
    nodes, characters, waiting = 0, 0, [(told["json"], 0)]
    while waiting:
        each, depth = waiting.pop()
        kind = type(each)
        if kind is dict:
            if any(type(key) is not str for key in each):
                raise NoJSON
            waiting += [(item, depth + 1) for item in (*each, *each.values())]
        elif kind is list:
            waiting += [(item, depth + 1) for item in each]
        elif kind is str:
            characters += len(each)
        elif kind is int and not -(1 << 63) <= each < 1 << 64:
            raise NoJSON  # readers of the JSON would make it a float
        elif id(kind) not in PLAIN:
            raise NoJSON
        nodes += 1
        too_many = nodes + len(waiting) > MOST_NODES or characters > MOST_EACH
        if too_many or depth > MOST_DEPTH:
            raise TooLarge
    try:
        text = dumps(told["json"], ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, TypeError):  # not a number, a lone surrogate, bytes
        raise NoJSON from None
    if len(text) > MOST_EACH:
        raise TooLarge
    return told


def cell(value: Any) -> Any:
    """Return the value of a table's cell."""
    value = value.item() if is_number(type(value)) else value
    if type(value) is float and not isfinite(value):
        return None
    if type(value) is not str and id(type(value)) in PLAIN:
        with suppress(NoJSON):
            return as_json(value)["json"]
    return cut(str(value), MOST_CELL)[0]


def labels(names: Any) -> list[str]:
    """Return the names of columns, each of them once."""
    told: list[str] = []
    for name in names:
        label = cut(str(name), MOST_CELL)[0]
        known, n = label, 1
        while label in told:
            label, n = f"{known}.{n}", n + 1
        told.append(label)
    return told


def describe_table(value: Any, is_pandas: bool, told: dict[str, Any]) -> None:
    """Describe a table of pandas or polars."""
    told["shape"] = [int(size) for size in value.shape]
    told["truncated"] = value.shape[1] > COLUMNS
    part = value.iloc[:ROWS, :COLUMNS] if is_pandas else value[:ROWS, :COLUMNS]
    names = labels(part.columns)
    columns = [each for _, each in part.items()] if is_pandas else part.get_columns()
    told["dtypes"] = dict(zip(names, map(str, part.dtypes)))  # noqa: B905
    if is_pandas and named(type(value.index))[1] != "RangeIndex":
        told["index"] = [cut(str(label), MOST_CELL)[0] for label in part.index]
    rows = zip(*[map(cell, each.to_list()) for each in columns])  # noqa: B905
    told["head"] = [dict(zip(names, row)) for row in rows]  # noqa: B905


def describe_array(value: Any, told: dict[str, Any]) -> None:
    """Describe an array of NumPy."""
    told["shape"] = [int(size) for size in value.shape]
    told["dtype"] = str(value.dtype)
    if 0 < value.size <= RANGE_ITEMS and value.dtype.kind in "biuf":
        numpy = sys.modules["numpy"]
        ends = [float(end.reduce(value, axis=None)) for end in (numpy.fmin, numpy.fmax)]
        if all(isfinite(end) for end in ends):
            told["range"] = ends
    if value.size <= 1_000:
        told["repr"], told["truncated"] = cut(repr(value), MOST_REPR)


def text_of(value: Any, kind: Any) -> tuple[str, bool]:
    """Return the `repr` of a value, and whether something was left out of it."""
    if kind is str or kind is bytes:
        return repr(value[:MOST_REPR]), len(value) > MOST_REPR
    if kind is int and value.bit_length() > MOST_BITS:
        return hex(value), False  # Python refuses to write it in tens
    if id(kind) not in BRACKETS:
        return repr(value), False
    try:
        text = short.repr(value)
    except ValueError:  # a number in it is as large
        text = collected(value, kind, DEPTH, [PARTS])[0]
    return text, "..." in text or "…" in text


def description(value: Any) -> dict[str, Any]:
    """Return a description of a value that is not JSON, or is too large."""
    kind = type(value)
    module, name = named(kind)
    shown = name if module in ("builtins", "__main__") else f"{module}.{name}"
    told: dict[str, Any] = {"status": "ok", "type": cut(shown, MOST_CELL)[0]}
    library, name = table_type(kind)
    if name == "DataFrame":
        describe_table(value, library == "pandas", told)
    elif name == "ndarray":
        describe_array(value, told)
    else:
        if (library, name) == ("pandas", "Series"):
            told["shape"], told["dtype"] = [len(value)], str(value.dtype)
        text, told["truncated"] = text_of(value, kind)
        told["repr"], is_cut = cut(text, MOST_REPR)
        told["truncated"] |= is_cut
    return told


def evaluated(value: Any, room: int) -> dict[str, Any]:
    """Return a value as JSON; if that is impossible, or there is no room, its description."""
    is_cut = False
    try:
        told = as_json(value)
        if len(dumps(told)) <= room:
            return told
        is_cut = True
    except (NoJSON, TooLarge) as error:
        is_cut = type(error) is TooLarge
    told = description(value)
    if is_cut:
        told["truncated"] = True
    if len(dumps(told)) > room:
        return {"status": "ok", "type": told["type"], "truncated": True}
    return told


def failed(error: BaseException) -> dict[str, Any]:
    """Return the description of an error. Its own `str` may fail too."""
    try:
        evalue = cut(str(error), 2_000)[0]
    except BaseException:
        evalue = ""
    return {"status": "error", "ename": cut(named(type(error))[1], MOST_CELL)[0], "evalue": evalue}


def evaluate(given: str) -> None:
    """Evaluate expressions in the user's namespace, and add the results to the reply.

    That runs the user's code: the expression itself, and then the `repr` of a value that is neither
    JSON nor of a well-known library. If that code fails, the error belongs to this one expression.
    An interrupt ends the evaluation of all remaining expressions.
    """
    shell = sys.modules["IPython"].get_ipython()
    told: dict[str, Any] = {}
    room = MOST_ALL
    for name, expression in loads(given).items():
        try:
            code = compile(expression.strip(), f"<value {name}>", "eval")
            value = eval(code, shell.user_global_ns, shell.user_ns)  # noqa: S307
            told[name] = evaluated(value, room)
        except KeyboardInterrupt as error:
            told[name] = failed(error)
            break
        except BaseException as error:
            told[name] = failed(error)
        room -= len(dumps(told[name]))
    tell(VALUES_SOURCE, values=dumps(told))


# -- questions by a comm ---------------------------------------------------------------------------


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
