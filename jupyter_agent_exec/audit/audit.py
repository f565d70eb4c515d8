"""Signs the record and copies it to other places, as configured."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from traitlets import Bool, Bunch, Dict, Float, HasTraits, List, TraitError, Unicode, validate

from ..journal.heads import PRIVATE_KEY
from ..journal.history import History
from ..services import Leaf, Services
from .followers import Followers
from .sink_settings import make_sinks

if TYPE_CHECKING:
    from .signer import Signer


class AuditTraits(HasTraits):
    """The traits of signatures and sinks."""

    sinks = List(
        Dict(),
        config=True,
        help="""Places outside the server that get a copy of the record. Each is a dictionary with
        its `kind` and what that kind needs, such as `{"kind": "folder", "path": "/mnt/audit"}`.
        See the documentation of sinks. Default: none.""",
    )

    @validate("sinks")
    def _check_sinks(self, proposal: Bunch) -> list[dict[str, object]]:
        try:
            make_sinks(proposal.value)
        except ValueError as error:
            raise TraitError(str(error)) from None
        return list(proposal.value)

    sign_heads = Bool(
        False,
        config=True,
        help="""Whether to sign the heads of the record's chains, so that it holds against whoever
        can write the history but does not have the key. Needs the extra `signing`.""",
    )
    signing_key = Unicode(
        config=True,
        help="""File with the Ed25519 private key that signs, in PEM without a password. Keep it
        where code in kernels cannot read it. Default: `signing-key.pem` in the history's folder,
        made when it is needed first.""",
    )
    signed_heads = Unicode(
        config=True,
        help="""File with the heads that were signed last, which the server writes. Keep it where
        code in kernels cannot write it. Default: beside `signing_key`, with `.heads` added to its
        name.""",
    )
    signing_interval = Float(
        60,
        min=0.1,
        config=True,
        help="""Seconds between two signatures of a chain that grows. A session's journal is also
        signed when the session ends.""",
    )

    @validate("sign_heads")
    def _check_sign_heads(self, proposal: Bunch) -> bool:
        if proposal.value and find_spec("cryptography") is None:
            raise TraitError("sign_heads: pip install 'jupyter-agent-exec[signing]' first.")
        return bool(proposal.value)

    @validate("signing_key")
    def _check_signing_key(self, proposal: Bunch) -> str:
        if proposal.value and not Path(proposal.value).is_file():
            raise TraitError(f"signing_key: there is no file {proposal.value}.")
        return str(proposal.value)


class AuditLeaf(Leaf):
    """Signs the record of a server, and copies it to sinks."""

    traits = AuditTraits
    settings: AuditTraits
    _loop: asyncio.AbstractEventLoop | None = None
    _signer: Signer | None = None

    def attach(self, services: Services) -> dict[str, object]:
        """Make what follows the history."""
        history = services.history
        publish = partial(services.activity.publish, "approvals")

        def changed() -> None:
            """Let pages read again what fails; called in the thread of a sink or of the signer."""
            if (loop := self._loop) is not None:
                loop.call_soon_threadsafe(publish)

        history.copies = Followers(
            history.folder,
            make_sinks(self.settings.sinks),
            history.own_journals,
            changed,
            self.log,
        )
        if self.settings.sign_heads:
            history.signatures = self._signer = self._make_signer(history, changed)
        return {}

    def start(self) -> None:
        """Begin to sign. The history itself starts what copies it."""
        self._loop = asyncio.get_running_loop()
        if self._signer is not None:
            self._signer.start()

    async def stop(self) -> None:
        """Stop to tell pages of sinks. The signer ends with the history."""
        self._loop = None

    def _make_signer(self, history: History, told: Callable[[], None]) -> Signer:
        """Create what signs the heads of the history; a key that was handed in is read now."""
        from .signer import Signer, SigningKey

        settings = self.settings
        own = history.folder / PRIVATE_KEY
        handed_in = SigningKey(Path(settings.signing_key)) if settings.signing_key else None
        load_key = partial(SigningKey.made, own) if handed_in is None else lambda: handed_in
        heads = Path(settings.signed_heads or f"{settings.signing_key or own}.heads")
        return Signer(history, load_key, heads, settings.signing_interval, told, self.log)
