"""What only a kernel of Python can do."""

from __future__ import annotations

from ..errors import LanguageNotSupported
from ..kernels.kernel import Kernel


def check_python(kernel: Kernel | None, what: str) -> None:
    """Raise LanguageNotSupported if a kernel is known to be another than IPython's.

    What is not there, or has been busy since it was found, is not known.

    Parameters
    ----------
    what
        The field that asks for it, or what is asked for.
    """
    info = {} if kernel is None else kernel.connection.kernel_info
    if kernel is None or not info or kernel.connection.inspector.is_python:
        return
    language = str((info.get("language_info") or {}).get("name") or "another language")
    raise LanguageNotSupported(
        f"{what}: only Python's kernel (ipykernel) can do that; this one, {kernel.name!r}, runs "
        f"{language}. Run code of that language instead.",
        field=what,
        language=language,
        kernel_name=kernel.name,
    )
