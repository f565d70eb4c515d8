"""The approval policy: the operator's configuration, and what users have set since.

What users set is kept in a small file in the history's folder, and read when the server starts.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, get_args

import msgspec
from traitlets import TraitError

from ..errors import HistoryUnavailable, InvalidRequest
from ..models import ApprovalPolicy, SetPolicy
from ..types import ApprovalMode, TargetKind

Modes = dict[TargetKind, ApprovalMode]

KINDS: Final[tuple[TargetKind, ...]] = get_args(TargetKind)
MODES: Final[tuple[ApprovalMode, ...]] = get_args(ApprovalMode)
DEFAULT: Final[Modes] = {"scratch": "none", "notebook": "first", "kernel": "first"}

FILE: Final = "approval-policy.json"


def checked_modes(name: str, modes: Mapping[str, Any]) -> Modes:
    """Return a trait's modes by kind of target; TraitError if it is invalid."""
    for kind, mode in modes.items():
        if kind not in KINDS:
            raise TraitError(f"{name}: {kind!r} is no kind of target; {_or(KINDS)}.")
        if mode not in MODES:
            raise TraitError(f"{name}: {kind} cannot be {mode!r}; {_or(MODES)}.")
    return {kind: modes[kind] for kind in KINDS if kind in modes}


class Policy:
    """The approval policy in force, by the kind of a session's target.

    Parameters
    ----------
    folder
        The history's folder.
    configured
        The operator's defaults, which users may change.
    forced
        The operator's modes that nobody can change.
    """

    def __init__(
        self, folder: Path, configured: Modes, forced: Modes, *, log: logging.Logger
    ) -> None:
        self._path = folder / FILE
        self._configured = {**DEFAULT, **configured}
        self._forced = forced
        self._set = _read(self._path, log)

    @property
    def modes(self) -> Modes:
        """The modes in force."""
        return {**self._configured, **self._set, **self._forced}

    def mode(self, kind: TargetKind) -> ApprovalMode:
        """Return the mode of sessions with this kind of target."""
        return self._forced.get(kind) or self._set.get(kind) or self._configured[kind]

    def forced_mode(self, kind: TargetKind) -> ApprovalMode | None:
        """Return the mode that the operator forces for a kind of target; None for none."""
        return self._forced.get(kind)

    def model(self) -> ApprovalPolicy:
        """Return the policy as a model."""
        return ApprovalPolicy(**self.modes, forced=[kind for kind in KINDS if kind in self._forced])

    def with_set(self, request: SetPolicy) -> Modes:
        """Return what users have set, with the changes of a request.

        Raises
        ------
        InvalidRequest
            The configuration forces another mode; names the field.
        """
        wanted: Modes = {
            kind: mode for kind in KINDS if (mode := getattr(request, kind)) is not None
        }
        for kind, mode in wanted.items():
            forced = self._forced.get(kind, mode)
            if mode != forced:
                raise InvalidRequest(
                    f"{kind}: the server's configuration forces {forced!r}.",
                    field=kind,
                    allowed=[forced],
                )
        return {**self._set, **wanted}

    def keep(self, modes: Modes) -> None:
        """Put what users have set in force, on disk first; this blocks.

        Raises
        ------
        HistoryUnavailable
            It cannot be written, so nothing has changed.
        """
        temporary = self._path.with_suffix(".new")
        try:
            with temporary.open("wb") as file:
                file.write(msgspec.json.encode(modes, order="sorted"))
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self._path)
        except OSError as error:
            raise HistoryUnavailable(
                f"The policy cannot be kept ({error.strerror or error}); it is as it was."
            ) from error
        self._set = modes


def _read(path: Path, log: logging.Logger) -> Modes:
    """Return what users have set; nothing if it cannot be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Modes)
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError) as error:
        log.warning("What people set of the approval policy cannot be read (%s): %s", path, error)
        return {}


def _or(words: tuple[str, ...]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"
