"""Adapters: interfaces of agent frameworks that run code in a Jupyter kernel and record it.

There is one module per framework. Import it by name; it needs its framework installed. All take a
`Target`, which says where code runs. They share `kernel_session`, the session that runs the code,
and `result_pieces`, which splits up its results.
"""

from .kernel_session import Target

__all__ = ["Target"]
