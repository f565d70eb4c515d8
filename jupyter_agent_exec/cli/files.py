"""`jupyter agent-exec files`: the files in a session's folder."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from ..client import Session
from ..client.display import size
from . import exit_codes
from .command import command
from .command_client import connected
from .console import Console
from .usage import UsageError


def _options(parser: ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION", help="the session's id; it must be open")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", dest="action", required=True)
    listing = actions.add_parser(
        "list", help="list the files in the session's folder, or in a folder below it"
    )
    listing.add_argument(
        "path",
        metavar="FOLDER",
        nargs="?",
        help="a folder below the session's; by default the session's own",
    )
    listing.add_argument(
        "--recursive", action="store_true", help="also list what is in folders below"
    )
    get = actions.add_parser("get", help="download a file")
    get.add_argument("name", metavar="FILE", help="its path in the session's folder")
    get.add_argument(
        "--to",
        metavar="PATH",
        help="a local file or folder (the current one); - for standard output",
    )
    put = actions.add_parser("put", help="upload a file")
    put.add_argument("source", metavar="SOURCE", help="a local file")
    put.add_argument(
        "name",
        metavar="FILE",
        nargs="?",
        help="its path in the session's folder; by default its own name",
    )
    delete = actions.add_parser("delete", help="delete a file, or an empty folder")
    delete.add_argument("name", metavar="FILE", help="its path in the session's folder")
    for each in (put, delete):
        each.add_argument(
            "--replace",
            action="store_true",
            help="also replace or delete a file that the session has not written",
        )


@command("files", "list, download, upload or delete the files in a session's folder", _options)
def files(arguments: Namespace, console: Console) -> int:
    """List, download, upload or delete a session's files."""
    if arguments.action == "put" and not Path(arguments.source).is_file():
        raise UsageError(f"There is no file {arguments.source}.")
    with connected(arguments, console, may_start=False) as client:
        session = client.session(arguments.session)
        _ACTIONS[arguments.action](session, arguments, console)
    return exit_codes.OK


def _list(session: Session, arguments: Namespace, console: Console) -> None:
    found = list(session.files(arguments.path or "", recursive=arguments.recursive))
    if arguments.json:
        console.json(found)
        return
    rows = [
        (
            "-" if file.bytes is None else size(file.bytes),
            file.modified_at[:19].replace("T", " ") + "Z",
            f"{file.path}/" if file.is_folder else file.path,
        )
        for file in found
    ]
    console.table(("SIZE", "WRITTEN", "FILE"), rows, 100)


def _get(session: Session, arguments: Namespace, console: Console) -> None:
    if arguments.to == "-":
        sys.stdout.buffer.write(session.download(arguments.name))
        return
    name = arguments.name.rpartition("/")[2]
    target = session.download(arguments.name, arguments.to or name)
    _say(arguments, console, {"file": str(target)}, f"{target}  {size(target.stat().st_size)}")


def _put(session: Session, arguments: Namespace, console: Console) -> None:
    name = arguments.name or None
    etag = session.file_etag(name or Path(arguments.source).name) if arguments.replace else None
    file = session.upload(arguments.source, name, etag=etag)
    if arguments.json:
        console.json(file)
    else:
        console.line(f"{file.path}  {size(file.bytes or 0)}")


def _delete(session: Session, arguments: Namespace, console: Console) -> None:
    etag = session.file_etag(arguments.name) if arguments.replace else None
    session.delete_file(arguments.name, etag=etag)
    _say(arguments, console, {"deleted": arguments.name}, f"deleted {arguments.name}")


def _say(arguments: Namespace, console: Console, told: dict[str, str], line: str) -> None:
    if arguments.json:
        console.json(told)
    else:
        console.line(line)


_ACTIONS = {"list": _list, "get": _get, "put": _put, "delete": _delete}
