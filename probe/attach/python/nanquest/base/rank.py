"""The rank of this process among those that train together."""

from __future__ import annotations

import os
import sys


def place_in_group() -> tuple:
    """(rank, world size): of torch.distributed if it is initialised, because not every launcher sets the usual variables; otherwise of
    the variables."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    texts = os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "")
    return tuple(int(text) if text.isdigit() else default for text, default in zip(texts, (0, 1)))


def restarts(environment=os.environ) -> int:
    """How often torchrun has restarted the processes of this run."""
    count = environment.get("TORCHELASTIC_RESTART_COUNT", "")
    return int(count) if count.isdecimal() else 0
