"""What runs first in the kernels of Pantheon's interpreters: their echo, and what code finds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

DEFAULT_INIT_CODE: Final = """\
try:
    try:
        import nest_asyncio2 as _nest_asyncio
    except ImportError:
        import nest_asyncio as _nest_asyncio
    _nest_asyncio.apply()
except ImportError:
    pass  # asyncio.run() then fails, as the kernel's own loop runs

import os
import uuid

def _plotting(info):
    # It takes most of a second, so only code that names it waits for it.
    global matplotlib, plt
    if "matplotlib" not in info.raw_cell and "plt" not in info.raw_cell:
        return
    get_ipython().events.unregister("pre_run_cell", _plotting)
    try:
        import matplotlib
        import matplotlib.pyplot as plt
    except ImportError:
        return

    def use(backend, *, force=True, use=matplotlib.use):
        # Agg is chosen by code that expects no display; here it would hide its figures.
        if str(backend).lower() != "agg":
            use(backend, force=force)

    matplotlib.use = use

get_ipython().events.register("pre_run_cell", _plotting)
"""
"""What an interpreter starts with when nothing else is asked for: code finds ``matplotlib``,
``plt``, ``os`` and ``uuid``, may call `asyncio.run`, and its figures are shown whether it selects
Agg or not."""

_ECHO: Final = """\
def _echo():
    import ast
    import sys
    from IPython.core.formatters import PlainTextFormatter

    shell = get_ipython()

    def shown(node):
        if not isinstance(node, ast.Expr):
            return node
        call = ast.parse("__import__('sys').displayhook()", mode="eval").body
        call.args = [node.value]
        call = ast.copy_location(ast.Expr(ast.copy_location(call, node)), node)
        return ast.fix_missing_locations(call)

    def run_ast_nodes(nodes, *args, run=shell.run_ast_nodes, **kwargs):
        return run([shown(node) for node in nodes], *args, **kwargs)

    class Printed(PlainTextFormatter):
        def __call__(self, value):
            return str(value)

    # IPython's own "all" echoes what is within loops too, and a transformer what %timeit repeats.
    shell.ast_node_interactivity = "none"
    shell.run_ast_nodes = run_ast_nodes
    shell.displayhook.quiet = lambda: False
    # exit() leaves the code, as in any program of Python, and not the kernel.
    shell.ask_exit = sys.exit
    shell.display_formatter.formatters["text/plain"] = Printed(parent=shell.display_formatter)

_echo()
del _echo
"""


def init_source(folder: str | None, env: Mapping[str, str], init_code: str | None) -> str:
    """Return what starts an interpreter of its own.

    Every expression of the top level is displayed, with what `print` would print as its text.

    Parameters
    ----------
    folder
        Where to go; None to stay where the kernel starts.
    env
        Environment variables.
    init_code
        What comes last.
    """
    lines = [_ECHO, "import os as _os", f"_os.environ.update({dict(env)!r})"]
    if folder is not None:
        lines.append(f"_os.chdir({folder!r})")
    lines += ["del _os", init_code or ""]
    return "\n".join(lines)
