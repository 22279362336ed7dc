"""Calls a function when the program imports a certain module. Nothing is imported for that."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys

from .say import say

_begun = []  # those that wait


def settle() -> None:
    """The program trains: what it was still importing when the probe came is imported by now."""
    for waiting in [*_begun]:
        waiting.settle()


def _is_partial(module) -> bool:
    """Whether its own code still runs: a module that imports torch is there before it is complete."""
    return getattr(getattr(module, "__spec__", None), "_initializing", False)


class Waiting(importlib.abc.MetaPathFinder):
    """Calls `watched[name](module)` for each of the modules: at once if it is imported already, else right after its import. For one whose
    import has begun already, at the next import of another module, or by settle()."""

    def __init__(self, watched: dict):
        self._watched = watched
        self._waits_for = set()
        self._partial = set()

    def begin(self) -> None:
        there = {name for name in self._watched if name in sys.modules}
        self._partial = {name for name in there if _is_partial(sys.modules[name])}
        for name in there - self._partial:
            self._call(name, sys.modules[name])
        self._waits_for = set(self._watched) - there
        if self._waits_for or self._partial:
            _begun.append(self)
            if self not in sys.meta_path:
                sys.meta_path.insert(0, self)

    def remove(self) -> None:
        self._waits_for, self._partial = set(), set()
        self._rest()

    def settle(self) -> None:
        for name in [*self._partial]:
            module = sys.modules.get(name)
            if module is not None and not _is_partial(module):
                self._partial.discard(name)
                self._call(name, module)
        self._rest()

    def _rest(self) -> None:
        if self._waits_for or self._partial:
            return
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        if self in _begun:
            _begun.remove(self)

    def _call(self, name: str, module) -> None:
        try:
            self._watched[name](module)
        except Exception as error:  # noqa: BLE001 (neither an import nor the rest of the probe fails because of this)
            say(f"{name} is not followed: {type(error).__name__}: {error}")

    def imported(self, name: str, module) -> None:
        if name in self._waits_for:
            self._waits_for.discard(name)
            self._rest()
            self._call(name, module)

    def find_spec(self, name, path=None, target=None):
        if self._partial:
            self.settle()
        if name not in self._waits_for:
            return None
        self._waits_for.discard(name)
        self._rest()
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or not hasattr(spec.loader, "exec_module"):
            return None
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            self._call(name, module)
            for other in [*_begun]:  # they were not asked for it
                other.imported(name, module)

        spec.loader.exec_module = exec_module
        return spec
