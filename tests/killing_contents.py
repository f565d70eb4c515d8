"""A contents manager with which a test's server is killed at a save that it names."""

from __future__ import annotations

import os
import signal
from typing import Any

from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager
from traitlets import Unicode


class KillingContents(AsyncLargeFileManager):
    """Ends its own process."""

    before = Unicode("", config=True)
    """The process ends before the first save with a cell that has this source."""
    after = Unicode("", config=True)
    """It ends after the first save with a cell that has this source."""

    async def save(self, model: dict[str, Any], path: str = "") -> Any:
        sources = [cell["source"] for cell in (model.get("content") or {}).get("cells", [])]
        if self.before in sources:
            os.kill(os.getpid(), signal.SIGKILL)
        saved = await super().save(model, path)
        if self.after in sources:
            os.kill(os.getpid(), signal.SIGKILL)
        return saved
