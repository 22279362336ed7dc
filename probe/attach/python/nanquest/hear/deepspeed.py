"""DeepSpeed. Its optimizers write flat weights of their own, of which ZeRO gives each process a part, and skip an update themselves if
gradients are not finite. The probe hooks the optimizer inside them, which is not called then."""

from __future__ import annotations

import functools

import torch

from ..base.import_watch import Waiting
from ..pytorch.guarded import guarded
from ..pytorch.names import is_plain
from ..steps.loss_scaler import number_in
from ..steps.program import known_program

_NAMED = 2  # at most this many weights of a flat one are named

# Where its optimizers are, and the attribute in which each holds its flat weights.
_KINDS = {
    "deepspeed.runtime.zero.stage_1_and_2": ("DeepSpeedZeroOptimizer", "single_partition_of_fp32_groups"),
    "deepspeed.runtime.zero.stage3": ("DeepSpeedZeroOptimizer_Stage3", "fp32_partitioned_groups_flat"),
    "deepspeed.runtime.fp16.fused_optimizer": ("FP16_Optimizer", "fp32_groups_flat"),
    "deepspeed.runtime.bf16_optimizer": ("BF16_Optimizer", "fp32_groups_flat_partition"),
}


def _weights_in(optimizer, i) -> list:
    """The model's weights that form the i-th flat one."""
    for held in ("params_in_partition", "fp16_groups", "bf16_groups"):
        if groups := getattr(optimizer, held, None):
            return groups[i]
    return []


def _gradients_for(optimizer, i, flat) -> list:
    """The gradients that form the gradient of the i-th flat weight."""
    if flat.grad is not None:
        return [flat.grad]
    averaged = getattr(optimizer, "averaged_gradients", None)
    if averaged is not None:
        return [*(averaged.get(i) or ())]
    return [weight.grad for weight in _weights_in(optimizer, i) if weight.grad is not None]


def _with_gradient(flat, pieces):
    """The flat weight, and what its gradient would have been."""
    part = flat.detach()
    if pieces and all(map(is_plain, pieces)) and sum(piece.numel() for piece in pieces) == flat.numel():
        part.grad = torch.cat([piece.detach().reshape(-1) for piece in pieces]).to(flat.dtype)
    return part


def _name(program, optimizer, held, i, flat) -> None:
    names = [known[1] for weight in _weights_in(optimizer, i) if (known := program.numbers.of(weight))]
    name = f"flat weights {i}"
    program.name_parameter(name, flat, optimizer, (held, i))
    if names:
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        program.attached.ops.note("part_of." + name, f"of {', '.join(names[:_NAMED])}{more}")


class _Update:
    """A backward pass that begins."""

    def __init__(self, program, optimizer, held):
        flats = [flat for flat in getattr(optimizer, held) if is_plain(flat) and flat.numel()]
        for i, flat in enumerate(flats):
            if program.numbers.of(flat) is None:
                _name(program, optimizer, held, i, flat)
        self.gradients = [(flat, _gradients_for(optimizer, i, flat)) for i, flat in enumerate(flats)]
        self.scale = number_in(getattr(optimizer, "loss_scale", 1.0), 1.0)
        self.inner = program.updates.made


@guarded
def _begins(attached, optimizer, held):
    if not attached.started and not attached.start():
        return None
    program = known_program()
    update = _Update(program, optimizer, held)
    program.scaling.told = update.scale
    return update


@guarded
def _is_over(attached, optimizer, update):
    program = known_program()
    try:
        if program.updates.made == update.inner:
            parts = [_with_gradient(flat, pieces) for flat, pieces in update.gradients]
            numbers = [program.numbers.of(flat)[0] for flat, _ in update.gradients]
            scales = getattr(optimizer, "dynamic_loss_scale", False) is True
            program.updates.left_out(attached, optimizer.optimizer, parts, numbers, bool(optimizer.overflow) and scales)
    finally:
        program.scaling.told = None


def _around_step(held, own):
    def step(self, *args, **kwargs):
        update = _begins(self, held)
        result = own(self, *args, **kwargs)
        if update is not None:
            _is_over(self, update)
        return result

    return step


@guarded
def _scaled(attached, scaled, loss):
    if attached.started and isinstance(loss, torch.Tensor) and scaled is not loss and is_plain(loss) and is_plain(scaled):
        attached.ops.note_scaled(scaled, loss)


def _around_scale(own):
    def scale_if_loss(self, value):
        scaled = own(self, value)
        _scaled(scaled, value)
        return scaled

    return scale_if_loss


def _watch_optimizer(patches, kind, held, module) -> None:
    if isinstance(owner := getattr(module, kind, None), type):
        patches.put(owner, "step", functools.partial(_around_step, held))


def _watch_scale(patches, module) -> None:
    if isinstance(owner := getattr(module, "ZeROOptimizer", None), type):
        patches.put(owner, "scale_if_loss", _around_scale)


def install(patches) -> Waiting:
    """Begins to observe. `remove` of the result and `patches.undo` end it."""
    watched = {name: functools.partial(_watch_optimizer, patches, *kind) for name, kind in _KINDS.items()}
    waiting = Waiting({**watched, "deepspeed.runtime.base_optimizer": functools.partial(_watch_scale, patches)})
    waiting.begin()
    return waiting
