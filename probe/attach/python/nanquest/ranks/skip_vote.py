"""For several processes that train together without DistributedDataParallel: if one skips an update, all must, or their weights become
different. One all-reduce of a number before every update, in a process group of the probe's own."""

from __future__ import annotations

import ctypes
import datetime
import sys

import torch

from ..base.rank import place_in_group
from ..pytorch import private

PATIENCE = 60.0  # seconds in which all must reach an update; after that each decides for itself


class Ranks:
    """The votes of one program. Not used under DistributedDataParallel."""

    def __init__(self, say_once):
        self._say_once = say_once
        self._group, self._told, self._value = None, False, None

    def _begin(self) -> None:
        self._told = True
        distributed = sys.modules.get("torch.distributed")
        if distributed is None or not distributed.is_available() or not distributed.is_initialized():
            return
        rank, size = place_in_group()
        try:
            store = distributed.PrefixStore("nanquest", private.default_store.find()())
            self._group = distributed.ProcessGroupGloo(store, rank, size, datetime.timedelta(seconds=PATIENCE))
            self._value = torch.zeros(1, dtype=torch.int64)
        except Exception as problem:  # noqa: BLE001 (no gloo, no network)
            self._alone(problem)
            return
        if rank == 0:
            self._say_once(
                f"this program sums its gradients itself, if at all: before each update the {size} ranks agree whether to "
                "leave it out, by an all-reduce of one number"
            )

    def _alone(self, problem) -> None:
        self._group = None
        self._say_once(
            f"the ranks can't agree whether to leave updates out, so each decides for itself: {' '.join(str(problem).split())[:200]}"
        )

    def first_of(self, mine: bool) -> int:
        """Called by all ranks at the same updates. The first rank that votes to skip; -1 if none does."""
        rank, size = place_in_group()
        if not self._told:
            self._begin()
        if self._group is None:
            return rank if mine else -1
        # Written and read in memory directly, so that no operation of ours is recorded.
        number = ctypes.c_int64.from_address(self._value.data_ptr())
        number.value = size - rank if mine else 0
        try:
            options = torch.distributed.AllreduceOptions()
            options.reduceOp = torch.distributed.ReduceOp.MAX
            self._group.allreduce([self._value], options).wait()
        except Exception as problem:  # noqa: BLE001 (a rank that is gone, or makes fewer updates)
            self._alone(problem)
            return rank if mine else -1
        return size - number.value if number.value else -1
