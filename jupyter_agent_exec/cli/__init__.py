"""The command `jupyter agent-exec`."""
# PYTHON_ARGCOMPLETE_OK

from __future__ import annotations

import os
from collections.abc import Sequence

from ..client import InvalidAddress, ServerUnreachable, UnexpectedAnswer
from ..errors import AgentExecError
from . import exit_codes
from .console import Console
from .parser import make_parser
from .usage import Declined, UsageError

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    Parameters
    ----------
    argv
        The arguments after the program's name; None for this process's arguments.
    """
    parser = make_parser()
    if "_ARGCOMPLETE" in os.environ:  # a shell completes the command line
        import argcomplete

        argcomplete.autocomplete(parser)
    arguments = parser.parse_args(argv)
    console = Console(quiet=arguments.quiet, is_json=getattr(arguments, "json", False))
    try:
        code: int | None = arguments.command(arguments, console)
    except (InvalidAddress, UsageError) as error:
        console.complain(f"{parser.prog}: {error}")
        return exit_codes.USAGE
    except Declined as error:
        console.complain(str(error))
        return exit_codes.STOPPED
    except ServerUnreachable as error:
        console.complain(f"{parser.prog}: {error}")
        return exit_codes.UNREACHABLE
    except (AgentExecError, UnexpectedAnswer) as error:
        console.complain(f"{parser.prog}: {error}")
        return exit_codes.REFUSED
    except KeyboardInterrupt:
        console.complain(f"{parser.prog}: interrupted")
        return exit_codes.INTERRUPTED
    except BrokenPipeError:
        return exit_codes.BROKEN_PIPE
    except OSError as error:
        console.complain(f"{parser.prog}: {error}")
        return exit_codes.USAGE
    return exit_codes.OK if code is None else code
