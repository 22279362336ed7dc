"""One update of a weight made in fp32, on copies: what the program's own format takes away from it."""

from __future__ import annotations

import collections
import dataclasses

import torch

from ..pytorch.values import aside, plain_part, sample

# Their update of a value depends on that value, its gradient and its moments alone, so a sample of the values is enough.
_BY_ELEMENT = ("SGD", "Adam", "AdamW", "NAdam", "RAdam", "Adamax", "Adagrad", "Adadelta", "RMSprop", "ASGD")
_SAMPLE = 1 << 16


@dataclasses.dataclass
class InFp32:
    moves: float  # share of the values with a gradient that change if weight, gradient and moments are fp32
    units: float  # median of |change| in halves of a unit of the weight's own format at these values


def can_try(optimizer) -> bool:
    return type(optimizer).__module__.startswith("torch.optim.") and type(optimizer).__name__ in _BY_ELEMENT


def half_units(values):
    """Half the distance from each value to the next one of its format."""
    limits = torch.finfo(values.dtype)
    exponents = torch.frexp(values.float().abs().clamp(min=limits.tiny))[1] - 1
    return torch.ldexp(torch.full_like(values, limits.eps, dtype=torch.float32), exponents) / 2


def in_fp32(ops, optimizer, group, parameter) -> InFp32 | None:
    """The coming update of `parameter`, tried. None if it can't be."""
    weight, gradient = plain_part(parameter), plain_part(parameter.grad)
    if weight is None or gradient is None or gradient.shape != weight.shape:
        return None

    def wide(tensor):
        return sample(tensor, _SAMPLE).to(torch.float32, copy=True)

    with aside(ops):
        copy = wide(weight)
        copy.grad = wide(gradient)
        state = {}
        for key, value in optimizer.state.get(parameter, {}).items():
            part = plain_part(value) if isinstance(value, torch.Tensor) else None
            if part is not None:
                value = wide(part) if part.shape == weight.shape and part.is_floating_point() else part.clone()
            state[key] = value
        twin = object.__new__(type(optimizer))
        twin.__dict__.update(optimizer.__dict__)
        twin.grad_scale = twin.found_inf = None
        twin.param_groups = [{**group, "params": [copy], "foreach": False, "fused": False, "differentiable": False}]
        twin.state = collections.defaultdict(dict, {copy: state})
        before, has_gradient = copy.clone(), copy.grad != 0
        step = type(optimizer).step
        getattr(step, "__wrapped__", step)(twin)  # without the hooks around it
        moved = (copy != before) & has_gradient
        if not has_gradient.any() or not moved.any():
            return InFp32(0.0, 0.0)
        own = sample(weight, _SAMPLE)
        units = ((copy - before).abs() / half_units(own))[moved].median()
        return InFp32(float(moved.sum() / has_gradient.sum()), float(units))
