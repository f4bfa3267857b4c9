"""Names of a package that are loaded when they are first asked for, so that one does not wait for the others."""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module


def on_first_use(package: str, modules: Mapping[str, Sequence[str]]) -> Callable[[str], object]:
    """Make a package's `__getattr__` from the modules below it and the names that each has."""
    home = {name: module for module, names in modules.items() for name in names}

    def load(name: str) -> object:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_module(f"{package}.{home[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return load
