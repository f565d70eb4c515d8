"""Runs all cells of a notebook in a trial. It imports nothing of ours."""


async def _run_all(cells: list[tuple[str, bool]]) -> list[object]:
    """Run sources in order, up to the first that fails and may not.

    Returns
    -------
    Its number, from 1, and the name of its error; empty if all ran.
    """
    shell = get_ipython()  # type: ignore[name-defined]  # noqa: F821 - the kernel's
    for number, (source, may_fail) in enumerate(cells, 1):
        try:
            transformed = shell.transform_cell(source)
            result = await shell.run_cell_async(
                source, store_history=False, transformed_cell=transformed
            )
            error = result.error_before_exec or result.error_in_exec
        except Exception as raised:  # it cannot be read
            error = raised
        if error is not None and not may_fail:
            return [number, type(error).__name__]
    return []
