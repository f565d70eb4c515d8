"""The routes of checkpoints and of undo, and the traits of an administrator."""

from __future__ import annotations

from tornado import web
from traitlets import Bool, Float, HasTraits, Int

from ..auth.operations import requires
from ..models import CheckpointList, SetCheckpoints, Undo, UndoExecution
from ..services import Leaf, Services
from ..sessions.handlers import SessionsBase
from ..types import UNLOCK_HEADER
from .manager import Checkpoints


class CheckpointsHandler(SessionsBase):
    """A kernel's checkpoints."""

    checkpoints: Checkpoints

    @web.authenticated
    @requires("decide", answers={200: CheckpointList})
    async def get(self, kernel_id: str) -> None:
        """List a kernel's checkpoints, and say whether agents' executions in it can be undone."""
        self.answer(await self.checkpoints.read(kernel_id))

    @web.authenticated
    @requires("decide", body=SetCheckpoints, answers={200: CheckpointList})
    async def put(self, kernel_id: str, body: SetCheckpoints) -> None:
        """Keep a checkpoint of a kernel before each execution of an agent, or no longer."""
        self.answer(await self.checkpoints.set(kernel_id, body.enabled))


class UndoHandler(SessionsBase):
    """An execution, undone."""

    checkpoints: Checkpoints

    @web.authenticated
    @requires("undo", body=UndoExecution, answers={200: Undo}, headers=(UNLOCK_HEADER,))
    async def post(self, execution_id: str, body: UndoExecution) -> None:
        """Make the kernel as it was before an execution, and before those that ran after it."""
        if self.caller.token is None:
            self.check_unlocked()
        self.answer(await self.checkpoints.undo(execution_id, self.caller))


class CheckpointTraits(HasTraits):
    """The traits of checkpoints."""

    allow_checkpoints = Bool(
        True,
        config=True,
        help="""Whether users may let a kernel keep checkpoints, with which they can undo what an
        agent ran and keep their variables when the kernel dies. They are off until a user turns
        them on for a kernel. Default: True.""",
    )
    checkpoints_per_kernel = Int(
        1,
        min=1,
        config=True,
        help="""How many checkpoints a kernel keeps, each from before one execution of an agent.
        Each takes as much memory as the kernel has changed since. Default: 1, so that only the
        newest execution can be undone.""",
    )
    checkpoint_memory_share = Float(
        0.5,
        min=0.0,
        max=1.0,
        config=True,
        help="""Largest part of the free memory that a checkpoint may come to take, which is as much
        as the kernel takes. If it is more, there is none. Default: 0.5.""",
    )


class CheckpointsLeaf(Leaf):
    """Keeps checkpoints of kernels."""

    traits = CheckpointTraits
    settings: CheckpointTraits
    routes = (
        ("/kernels/{kernel_id}/checkpoints", CheckpointsHandler),
        ("/executions/{execution_id}/undo", UndoHandler),
    )
    _checkpoints: Checkpoints | None = None

    def checkpoints(self) -> Checkpoints:
        """Return what keeps them."""
        if self._checkpoints is None:
            self._checkpoints = Checkpoints(
                is_allowed=self.settings.allow_checkpoints,
                most=self.settings.checkpoints_per_kernel,
                share=self.settings.checkpoint_memory_share,
                log=self.log,
            )
        return self._checkpoints

    def attach(self, services: Services) -> dict[str, object]:
        """Connect it with the managers."""
        self.checkpoints().attach(
            services.kernels, services.live_kernels, services.manager, services.activity
        )
        return {"checkpoints": self.checkpoints()}

    async def stop(self) -> None:
        """Drop all checkpoints."""
        await self.checkpoints().stop()
