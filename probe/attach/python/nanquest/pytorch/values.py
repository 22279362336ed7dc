"""Values of tensors, looked at beside the training: no operation here is recorded as one of its step."""

from __future__ import annotations

import contextlib

import torch

from .names import is_plain
from .shards import own_part

MOST_COMPARED = 1 << 20  # values of one tensor


@contextlib.contextmanager
def aside(ops):
    """What runs inside is not observed, and makes no graph."""
    ops.aside(True)
    try:
        with torch.no_grad():
            yield
    finally:
        ops.aside(False)


def plain_part(tensor):
    """This process's part of the tensor, without its graph, if the library can read it; else None."""
    if tensor is None:
        return None
    part = own_part(tensor)
    return part.detach() if is_plain(part) and part.numel() else None


def sample(tensor, most: int = MOST_COMPARED):
    """At most about `most` of its values, evenly spread, in one dimension; the same ones each time."""
    flat = tensor.reshape(-1)
    return flat[:: max(1, -(-flat.numel() // most))]


def contents(ops, tensor) -> int:
    """A hash of these values (of a large tensor: of a sample)."""
    with aside(ops):
        values = sample(tensor).contiguous().cpu()
    return ops.hashes_of_parts([values], [0], [values.nbytes])[0]


def largest(ops, tensors) -> list:
    """The largest |x| of each."""
    return ops.largest(tensors) if tensors else []
