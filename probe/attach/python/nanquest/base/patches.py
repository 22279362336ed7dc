"""Replaces functions of PyTorch that offer no hook, as long as the probe is attached."""

from __future__ import annotations

import functools


class Patches:
    def __init__(self):
        self._done = []

    def put(self, owner, name: str, around) -> None:
        """Replaces `owner.name` by `around(own)`; does nothing if this PyTorch has no such function."""
        own = vars(owner).get(name)
        if not callable(own):
            return
        stand_in = functools.wraps(own)(around(own))
        setattr(owner, name, stand_in)
        self._done.append((owner, name, own, stand_in))

    def undo(self) -> None:
        """Restores the own functions, except where another package has replaced ours since."""
        while self._done:
            owner, name, own, stand_in = self._done.pop()
            if vars(owner).get(name) is stand_in:
                setattr(owner, name, own)
