"""A program that runs a module as a kernel, and does not import modules from the kernel's folder.

The kernel's Python, of any version, runs it as a file. It needs only the standard library::

    python launcher.py MODULE ARGUMENT...

It replaces ``python -m MODULE ARGUMENT...``, which searches the current folder first: a file
``ipykernel_launcher.py`` or ``random.py`` there would run instead of the real one. Here the current
folder comes last, after the standard library and the environment. From Python 3.11 on,
`PYTHONSAFEPATH` would do that too, but programs that the kernel starts would inherit it.
"""

import os
import signal
import sys


def main() -> None:
    """Run the module."""
    not_first = {os.path.realpath(path) for path in (os.path.dirname(__file__), os.getcwd())}
    sys.path[:] = [path for path in sys.path if os.path.realpath(path) not in not_first]
    del sys.argv[0]
    # From here on, imports find only installed modules.
    if sys.argv[0] in ("ipykernel_launcher", "ipykernel"):
        # A server that stops interrupts its kernels, also one that starts. Once it has started,
        # ipykernel ignores the signal too, except while code runs.
        signal.signal(signal.SIGINT, signal.SIG_IGN)

        from importlib.util import find_spec

        from ipykernel import kernelapp

        module = find_spec(sys.argv[0])
        sys.argv[0] = (module and module.origin) or sys.argv[0]  # like `python -m`
        application = kernelapp.IPKernelApp.instance()
        sys.path.append("")  # IPython leaves it here, else it would insert it first
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
