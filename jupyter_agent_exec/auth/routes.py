"""The routes of the handlers, and what each handler must declare before the extension loads."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from tornado import web

from .. import errors
from .handler import AgentExecHandler, is_open
from .operations import operations

Route: TypeAlias = tuple[str, type[AgentExecHandler]]
"""A path template under the namespace, and the handler of its verbs."""


def check_verbs(handler: type[web.RequestHandler]) -> None:
    """Raise TypeError if a verb of the handler neither names its scope nor is for everybody."""
    named = operations(handler)
    for method in handler.SUPPORTED_METHODS:
        verb = method.lower()
        base = AgentExecHandler if verb == "options" else web.RequestHandler  # it answers 405
        if is_open(getattr(handler, verb)) and verb != "options":
            continue
        if verb not in named and getattr(handler, verb) is not getattr(base, verb, None):
            raise TypeError(f"{handler.__name__}.{verb} does not name its scope with @requires")


def check_services(handler: type[AgentExecHandler], services: Iterable[str]) -> None:
    """Raise TypeError if the handler declares an attribute that is not one of the services."""
    declared = {
        name
        for cls in handler.__mro__
        if issubclass(cls, AgentExecHandler)
        for name in inspect.get_annotations(cls)
        if not hasattr(handler, name)
    }
    missing = declared - {"caller", "route", *services}
    if missing:
        raise TypeError(f"{handler.__name__} needs {', '.join(sorted(missing))}: no such service")


def url_specs(
    routes: Iterable[Route], services: Mapping[str, object], namespace: str
) -> Iterator[tuple[str, type[AgentExecHandler], dict[str, object]]]:
    """Yield tornado's arguments for each route, and a handler for all other paths.

    Parameters
    ----------
    routes
        Path templates under the namespace, and their handlers. A parameter `{path}` is a contents
        path and may have slashes.
    services
        The objects that the handlers need, by the names of the attributes that they declare.
    namespace
        Path of the routes under the server's base URL.

    Raises
    ------
    TypeError
        A verb does not name its scope, or a handler needs a service that does not exist.
    """
    for path, handler in routes:
        check_verbs(handler)
        check_services(handler, services)
        pattern = re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", path.replace("{path}", "(?P<path>.+)"))
        yield f"/{namespace}{pattern}", handler, {"services": services, "route": path}
    yield rf"/{namespace}(?:/.*)?", NotFoundHandler, {"services": services, "route": "*"}


class NotFoundHandler(AgentExecHandler):
    """Any path under the namespace that is not a route."""

    async def prepare(self) -> None:  # type: ignore[override]
        """Refuse every verb in the same words."""
        await super().prepare()
        if self.request.method != "OPTIONS":
            path = self.public(self.request.path)
            raise errors.NotFound(f"There is no {path} here; see openapi.json.")
