"""Reasons why weights and moments can't be converted to fp32 in place."""

from __future__ import annotations

import torch

from ..pytorch.names import is_plain

_LIBRARIES = {
    "deepspeed": "DeepSpeed keeps weights and moments in memory of its own",
    **dict.fromkeys(("bitsandbytes", "torchao", "gptqmodel", "auto_gptq", "awq", "hqq"), "some of its weights have 4 or 8 bits"),
}


def can_skip(optimizer) -> bool:
    """Whether `step` ignores parameters without a gradient and their state, as PyTorch's optimizers do."""
    return type(optimizer).step.__module__.startswith("torch.optim")


def _kinds(value) -> set:
    return {kind.__name__ for kind in type(value).__mro__}


def of_module(module) -> str:
    """Why this part of a model can't be made fp32; "" if it can."""
    if {"FullyShardedDataParallel", "FSDPModule"} & _kinds(module):
        return "FSDP keeps weights and moments in shards"
    return of_kind(type(module))


def of_kind(kind) -> str:
    """The same for anything of this kind: a part of a model, or what the program calls in its place."""
    return _LIBRARIES.get(kind.__module__.partition(".")[0], "")


def of_weight(weight) -> str:
    """The same for a parameter."""
    if "DTensor" in _kinds(weight):
        return "FSDP keeps weights and moments in shards"
    if weight.element_size() == 1 or weight.is_quantized:
        return "some of its weights have 4 or 8 bits"
    return "" if is_plain(weight) else f"some of its weights are of type {type(weight).__name__}"


def of_optimizer(optimizer) -> str:
    """The same for an optimizer and its moments."""
    if why := _LIBRARIES.get(type(optimizer).__module__.partition(".")[0], ""):
        return why
    return "" if can_skip(optimizer) else f"{type(optimizer).__name__}.step is not PyTorch's own"


def tensors_in(value, depth=0):
    """Tensors that an optimizer keeps: in dictionaries, and LBFGS in lists."""
    if isinstance(value, torch.Tensor):
        yield value
    elif depth < 3 and isinstance(value, (dict, list, tuple)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from tensors_in(each, depth + 1)
