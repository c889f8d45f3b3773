"""Imports of modules that a command needs, but not its help: they are executed when the first command runs."""

import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

PACKAGES = ("musicsvc.config", "musicsvc.networks", "musicsvc.reports", "musicsvc.server", "musicsvc.store")


class Later(ModuleType):
    """A module that is executed when a name is first looked up in it."""

    def __getattr__(self, name: str) -> Any:
        path = self.__dict__.get("__path__")
        if name.startswith("__") or (path and PathFinder.find_spec(f"{self.__name__}.{name}", path)):
            raise AttributeError(name)  # the import statement asks, which then imports this module of the package
        execute(self)
        return getattr(self, name)


def execute(module: Later) -> None:
    """Execute the code of a module that is not yet executed. Then it is like any other."""
    spec = module.__spec__
    if spec is None or not isinstance(spec.loader, _Deferred):
        raise ImportError(f"{module.__name__} has no code to execute.")
    module.__loader__ = spec.loader = spec.loader.loader
    module.__class__ = ModuleType  # type: ignore[assignment]  # a module like any other
    spec.loader.exec_module(module)


def execute_all() -> None:
    """Execute all modules that were imported so far. The garbage collector never looks at them."""
    gc.disable()
    while waiting := [module for module in [*sys.modules.values()] if type(module) is Later]:
        for module in waiting:
            if type(module) is Later:  # no other one has executed it
                execute(module)
    gc.freeze()
    gc.enable()


class _Deferred(Loader):
    def __init__(self, loader: Loader) -> None:
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return Later(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing."""


class _Finder(MetaPathFinder):
    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        spec = PathFinder.find_spec(fullname, path, target) if fullname.startswith(PACKAGES) else None
        if spec is not None and spec.loader is not None:
            spec.loader = _Deferred(spec.loader)
        return spec


@contextmanager
def deferred() -> Iterator[None]:
    """Within the block, import statements do not execute modules of the store, the server and the reports.

    They are executed when a name is taken from them, so a module of the command line imports them as a whole.
    """
    finder = _Finder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
