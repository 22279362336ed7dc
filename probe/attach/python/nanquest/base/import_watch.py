"""Calls a function when the program imports a certain module. Nothing is imported for that."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys

from .say import say


class Waiting(importlib.abc.MetaPathFinder):
    """Calls `watched[name](module)` for each of the modules: at once if it is imported already, else right after its import."""

    def __init__(self, watched: dict):
        self._watched = watched
        self._waits_for = set()

    def begin(self) -> None:
        for name, watch in self._watched.items():
            if name in sys.modules:
                watch(sys.modules[name])
        self._waits_for = {name for name in self._watched if name not in sys.modules}
        if self._waits_for and self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def remove(self) -> None:
        self._waits_for = set()
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(self, name, path=None, target=None):
        if name not in self._waits_for:
            return None
        self._waits_for.discard(name)
        if not self._waits_for:
            self.remove()
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or not hasattr(spec.loader, "exec_module"):
            return None
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            try:
                self._watched[name](module)
            except Exception as error:  # noqa: BLE001 (the program's import must not fail because of the probe)
                say(f"{name} is not followed: {type(error).__name__}: {error}")

        spec.loader.exec_module = exec_module
        return spec
