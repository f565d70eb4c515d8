"""Where an agent token lets code run, and which notebooks it reaches.

A person's own credential reaches all that Jupyter's Authorizer allows, so nothing is looked at
here then. What is raised here is a denial.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, Protocol, TypeVar, cast

from ..errors import AgentExecError, Forbidden, KernelNotFound, NotebookNotFound
from ..models import KernelTarget, NotebookTarget, ScratchTarget, Target
from .grants import Grants, NotebookScope
from .patterns import plain
from .scopes import FOR_PEOPLE, Caller, Scope

E = TypeVar("E", bound=AgentExecError)

NOTEBOOK: Final[frozenset[Scope]] = frozenset({"exec:notebook", "read:notebook", "edit:notebook"})


class Kernels(Protocol):
    """What is asked of the server's Jupyter sessions."""

    async def notebooks_of(self, kernel_id: str) -> Collection[str]:
        """Return the contents paths of the notebooks that have a kernel."""


class Targets:
    """Looks at what a caller may do where. All of it raises, or returns nothing.

    Parameters
    ----------
    kernels
        Tells which notebook has which kernel.
    """

    def __init__(self, kernels: Kernels) -> None:
        self._kernels = kernels

    def check(self, caller: Caller, scope: Scope) -> None:
        """Raise Forbidden if a caller can do this nowhere."""
        grants = caller.grants
        if grants is None:
            return
        if scope in FOR_PEOPLE:
            raise denied(
                Forbidden(
                    "This is for people only, in JupyterLab or with their own credential: ask the "
                    "person for it.",
                    scope=scope,
                )
            )
        if not _holds(grants, scope):
            raise _lacks(scope)

    def reads(self, caller: Caller, path: str) -> bool:
        """Tell whether a caller may read the notebook at a path."""
        there = plain(path)
        return caller.grants is None or (
            there is not None and caller.grants.reaches("read:notebook", there)
        )

    def notebook(self, caller: Caller, scope: Scope, path: str) -> None:
        """Look whether a caller may do something to the notebook at a path, if there is one.

        Raises
        ------
        NotebookNotFound
            It may not be read there.
        Forbidden
            It may be read, but this may not be done to it.
        """
        grants = caller.grants
        if grants is None:
            return
        self.check(caller, scope)
        there = plain(path)
        if there is None or not grants.reaches("read:notebook", there):
            within = ", ".join(grants.patterns("read:notebook"))
            raise denied(
                NotebookNotFound(
                    f"Within the reach of this token ({within}) there is no notebook at {path!r}. "
                    "If you need one elsewhere, ask the person for a token that reaches it.",
                    path=path,
                )
            )
        if scope in NOTEBOOK and not grants.reaches(cast(NotebookScope, scope), there):
            raise _lacks(scope, f"{scope}:{there}", f" to {path!r}")

    async def target(self, caller: Caller, target: Target, path: str | None = None) -> None:
        """Look whether a caller may run code in the kernel of a target.

        Parameters
        ----------
        path
            Contents path of the target's notebook now, if it has one; None is what it says.

        Raises
        ------
        KernelNotFound, NotebookNotFound, Forbidden
        """
        grants = caller.grants
        if grants is None:
            return
        if isinstance(target, ScratchTarget):
            self.check(caller, "exec:scratch")
        elif isinstance(target, NotebookTarget):
            self.notebook(caller, "exec:notebook", path or target.path)
            if path is None and target.create:
                self.notebook(caller, "edit:notebook", target.path)
        else:
            await self._kernel(caller, grants, target)

    async def _kernel(self, caller: Caller, grants: Grants, target: KernelTarget) -> None:
        self.check(caller, "exec:notebook")
        if grants.is_everywhere("exec:notebook"):
            return
        paths = [plain(path) for path in await self._kernels.notebooks_of(target.kernel_id)]
        if not paths or not all(path and grants.reaches("exec:notebook", path) for path in paths):
            raise denied(
                KernelNotFound(
                    f"No kernel {target.kernel_id!r} runs on this server within the reach of this "
                    "token: it must be the kernel of a notebook that matches "
                    f"{', '.join(grants.patterns('exec:notebook'))}.",
                    kernel_id=target.kernel_id,
                )
            )


def denied(error: E) -> E:
    """Mark an error as one that tells of what is there, and that a token does not reach."""
    error.is_denial = True
    return error


def _holds(grants: Grants, scope: Scope) -> bool:
    """Tell whether there is anything to which this may be done."""
    if scope in NOTEBOOK:
        return grants.holds(cast(NotebookScope, scope))
    if scope == "exec":
        return grants.scratch or grants.holds("exec:notebook")
    if scope == "exec:scratch":
        return grants.scratch
    return scope != "files" or grants.files


def _lacks(scope: Scope, needed: str | None = None, where: str = "") -> Forbidden:
    """Return the refusal of what needs a scope that the token has not, or not there."""
    needed = needed or ("exec:scratch or exec:notebook" if scope == "exec" else scope)
    return denied(
        Forbidden(
            f"This token may not do this{where}: it needs the scope {needed}. Ask the person for "
            "a token that has it.",
            scope=needed,
        )
    )
