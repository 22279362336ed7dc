"""Uninitialised memory gets values that show when it is read: torch fills it, as its debugging option does."""

import torch


def unwritten(make):
    """What `make` gets from empty, new_empty or their like, filled with NaN."""
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        return make()
    finally:
        torch.use_deterministic_algorithms(False)


def fresh(shape, like, loud):
    """Unwritten memory where `loud`, else zeros."""
    return unwritten(lambda: like.new_empty(shape)) if loud else like.new_zeros(shape)
