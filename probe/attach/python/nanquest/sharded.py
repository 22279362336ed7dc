"""Weights that are spread over processes (DTensor, as fully_shard and tensor parallelism make them): the library looks at this
process' part."""

from __future__ import annotations

import sys

from .naming import is_plain


def is_sharded(tensor) -> bool:
    # A program that shards nothing has not imported it.
    tensors = sys.modules.get("torch.distributed.tensor")
    kind = getattr(tensors, "DTensor", None)
    return kind is not None and isinstance(tensor, kind)


def own_part(tensor):
    """The tensor itself, or this process' part of one that is spread. Shares its memory."""
    return tensor._local_tensor if is_sharded(tensor) else tensor


def part_with_gradient(parameter):
    """The same of a weight, with this process' part of its gradient as its .grad. The program's tensors stay as they are."""
    if not is_sharded(parameter):
        return parameter
    part = parameter._local_tensor.detach()
    renew_gradient(parameter, part)
    return part


def renew_gradient(parameter, part) -> None:
    """For `part` of before a backward pass: it has the gradient that the weight has now."""
    if part is parameter:
        return
    part.grad = None
    gradient = parameter.grad
    if gradient is not None and is_plain(own_part(gradient)):
        try:
            part.grad = own_part(gradient)
        except RuntimeError:  # of another shape or format than the weight: it is not looked at
            pass


def any_sharded(tensors) -> bool:
    return any(map(is_sharded, tensors))
