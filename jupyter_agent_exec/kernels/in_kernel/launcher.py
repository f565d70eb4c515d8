"""A program of its own: it runs a module as a kernel, whose own folder holds no part of it.

The kernel's Python runs it as a file, whichever version that is, with the standard library only::

    python launcher.py MODULE ARGUMENT...

It stands for ``python -m MODULE ARGUMENT...``, which looks for modules in the current folder first:
there, a file ``ipykernel_launcher.py`` or ``random.py`` would be run instead of the real one. Here
the current folder comes last, behind the standard library and the environment. `PYTHONSAFEPATH`
would do that from Python 3.11 on, but programs that the kernel starts would inherit it.
"""

import os
import sys


def main() -> None:
    """Run the module."""
    not_first = {os.path.realpath(path) for path in (os.path.dirname(__file__), os.getcwd())}
    sys.path[:] = [path for path in sys.path if os.path.realpath(path) not in not_first]
    del sys.argv[0]
    # From here on, what is imported is what is installed.
    if sys.argv[0] in ("ipykernel_launcher", "ipykernel"):
        from importlib.util import find_spec

        from ipykernel import kernelapp

        module = find_spec(sys.argv[0])
        sys.argv[0] = (module and module.origin) or sys.argv[0]  # as `python -m` has it
        application = kernelapp.IPKernelApp.instance()
        sys.path.append("")  # where IPython leaves it; else it would go before the environment
        application.initialize()  # type: ignore[no-untyped-call]
        if getattr(application, "ignore_cwd", False):
            sys.path.remove("")
        application.start()  # type: ignore[no-untyped-call]
    else:
        import runpy

        sys.path.append("")
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
