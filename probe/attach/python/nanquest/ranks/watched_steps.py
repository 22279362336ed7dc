"""Ranks that train together watch the same steps: a watched step takes long, and all ranks wait for the slowest.

Rank 0 measures how often the share of --watch-percent pays for one, and leaves it where the others find it (exchange.py), twenty steps
before it counts; they read it ten steps later. No rank waits for another. A rank that reads nothing goes on as before.
"""

from __future__ import annotations

import struct

from ..base.rank import place_in_group
from . import exchange

EVERY, DECIDES, READS = 50, 30, 40  # in one of fifty steps rank 0 decides, in another the others read; probe/step/watch_spacing.h
_TOLD = struct.Struct("<qq")  # the first step for which it counts; one step in how many


class WatchedSteps:
    def __init__(self, attached):
        self._attached = attached
        self._rank, size = place_in_group()
        self._on = size > 1 and attached.settings.level == "trace" and attached.settings.watch_every == ""
        self._exchange = None
        self._told = 0

    def step_made(self) -> None:
        if not self._on:
            return
        try:
            ops = self._attached.ops
            step = ops.step()
            if step % EVERY == (READS if self._rank else DECIDES):
                self._hear(ops) if self._rank else self._decide(ops, step)
        except Exception as problem:  # noqa: BLE001 (a store whose server is gone, no place for files)
            self._on = False
            self._attached.say_once(
                f"the ranks no longer agree on which steps are watched: {type(problem).__name__}: {' '.join(str(problem).split())[:200]}"
            )

    def _between(self):
        if self._exchange is None:
            self._exchange = exchange.between("watched", self._rank, [0], self._attached.settings.run_dir)
        return self._exchange

    def _decide(self, ops, step: int) -> None:
        every = ops.watch_wanted()
        if every in (0, self._told):
            return
        self._told, first = every, step + EVERY - DECIDES
        self._between().put(0, _TOLD.pack(first, every))
        ops.watch_from(first, every)

    def _hear(self, ops) -> None:
        found = self._between().all(0)
        if found is None:
            return
        first, every = _TOLD.unpack(found[0])
        if (first, every) != self._told:
            self._told = first, every
            ops.watch_from(first, every)
