"""The sinks that the configuration names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from .sink import Sink, SinkName, SinkSettings


class CommonSettings(
    SinkSettings, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"
):
    """The settings of a kind of sinks."""

    def make(self) -> Sink:
        """Return the sink; ImportError if its packages are not installed."""
        raise NotImplementedError


class Folder(CommonSettings, frozen=True, kw_only=True, tag="folder"):
    """A folder."""

    name: SinkName = "folder"
    path: str

    def make(self) -> Sink:
        """Return the sink."""
        from .file_sinks import FolderSink

        return FolderSink(self, Path(self.path))


class ObjectStore(CommonSettings, frozen=True, kw_only=True, tag="object-store"):
    """A bucket of an object store."""

    name: SinkName = "object-store"
    url: str
    options: dict[str, str] = msgspec.field(default_factory=dict)

    def make(self) -> Sink:
        """Return the sink."""
        from obstore.exceptions import BaseError
        from obstore.store import from_url

        from .file_sinks import ObjectStoreSink

        options: dict[str, Any] = dict(self.options)
        is_plain = self.options.get("endpoint", "").startswith("http://")
        try:
            store = from_url(
                self.url,
                config=options,  # type: ignore[call-overload]
                client_options={"allow_http": is_plain},
                retry_config={"max_retries": 1},  # the follower tries again
            )
        except BaseError as error:
            raise ValueError(str(error).partition("\n")[0]) from None
        return ObjectStoreSink(self, store)


class PostgreSQL(CommonSettings, frozen=True, kw_only=True, tag="postgresql"):
    """A PostgreSQL database."""

    name: SinkName = "postgresql"
    address: str
    schema: str = "public"

    def make(self) -> Sink:
        """Return the sink."""
        from .postgresql import PostgreSQLSink

        return PostgreSQLSink(self, self.address, self.schema)


_Kinds = Folder | ObjectStore | PostgreSQL

_REMOVED = ("otlp", "syslog")


def make_sinks(configured: Sequence[object]) -> list[Sink]:
    """Return the sinks of a configuration.

    Raises
    ------
    ValueError
        A sentence that names the field that is wrong.
    """
    sinks: list[Sink] = []
    for index, options in enumerate(configured):
        place = f"sinks[{index}]"
        kind = options.get("kind") if isinstance(options, dict) else None
        if kind in _REMOVED:
            raise ValueError(
                f"{place}.kind: there is no {kind!r} any more. Use a 'folder': any program that "
                "ships logs can send its files on."
            )
        try:
            settings = msgspec.convert(options, _Kinds)
        except msgspec.ValidationError as error:
            what, _, path = str(error).partition(" - at `$")
            raise ValueError(f"{place}{path.rstrip('`')}: {what}.") from None
        if any(sink.name == settings.name for sink in sinks):
            raise ValueError(
                f"{place}.name: another sink is named {settings.name!r}; give each a name."
            )
        try:
            sinks.append(settings.make())
        except ImportError as error:
            raise ValueError(
                f"{place}.kind: {kind!r} needs a package that is not installed ({error}): "
                f"pip install 'jupyter-agent-exec[{kind}]'."
            ) from error
        except ValueError as error:  # such as a URL that is none
            raise ValueError(f"{place}: {error}.") from error
    return sinks
