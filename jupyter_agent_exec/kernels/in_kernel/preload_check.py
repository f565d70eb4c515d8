"""The check that a session's preload runs in its kernel first. It imports nothing of ours."""


def _check_preload(modules: list[str], requirements: list[tuple[str, str]]) -> None:
    """Raise a ModuleNotFoundError that lists all missing modules, before anything is loaded."""
    from importlib.metadata import PackageNotFoundError, version
    from importlib.util import find_spec

    missing = []
    for name in modules:
        if find_spec(name) is None:
            missing.append(f"module {name}")
    for name, specifier in requirements:
        try:
            found = version(name)
        except PackageNotFoundError:
            missing.append(name + specifier)
            continue
        if specifier:
            from packaging.specifiers import SpecifierSet

            if not SpecifierSet(specifier).contains(found, prereleases=True):
                missing.append(f"{name}{specifier} (there is {found})")
    if missing:
        raise ModuleNotFoundError("not installed where this kernel runs: " + ", ".join(missing))
