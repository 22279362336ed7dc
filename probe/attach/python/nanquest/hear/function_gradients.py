"""torch.func.grad and grad_and_value, also under vmap: a pass of a program that trains by hand. The pass is forward and backward in one,
and what it is taken by are the weights."""

from __future__ import annotations

import torch

from ..pytorch import private
from ..pytorch.guarded import guarded, in_backward
from ..pytorch.names import is_plain
from ..steps.program import known_program


def _is_outermost() -> bool:
    """Whether nothing that runs is differentiated already. vmap may run around it."""
    if in_backward() or private.dispatch_modes() > 0 or private.tracing_state() is not None:
        return False
    return all(level.key() == private.TransformType.Vmap for level in private.all_transforms() or ())


def _memory_of(value):
    """The tensor that vmap has wrapped."""
    while isinstance(value, torch.Tensor) and private.is_wrapped(value):
        value = private.get_unwrapped(value)
    return value


def _tensors(tree) -> list:
    return [tensor for tensor in map(_memory_of, private.tree_leaves(tree)) if isinstance(tensor, torch.Tensor)]


def _arguments(argnums, args):
    return args[argnums] if isinstance(argnums, int) else [args[each] for each in argnums]


@guarded
def _begins(attached, argnums, args):
    """(lane, its weights) if such weights are trained."""
    if not _is_outermost():
        return None
    if not attached.observes():
        return None
    program = known_program()
    if not program.by_hand.applies():
        return None
    weights = _tensors(_arguments(argnums, args))
    attached.heed(attached.ops.derives(weights))
    trained = program.by_hand.lane_of(weights)
    if trained is not None:
        attached.heed(attached.ops.begin_forward())
        attached.step_may_be_made()
    return trained


@guarded
def _ends(attached, lane, weights, gradients, value):
    value = _memory_of(value)
    attached.ops.begin_backward([value] if value.numel() == 1 and is_plain(value) else [], False)
    attached.ops.end_backward()
    attached.ops.derived(lane.number, weights, _tensors(gradients), False)


def _around_gradient(own):
    def gradient_and_value(func, argnums, has_aux, args, kwargs):
        if torch.compiler.is_compiling():
            return own(func, argnums, has_aux, args, kwargs)
        seen = _begins(argnums, args)
        result = own(func, argnums, has_aux, args, kwargs)
        if seen is not None:
            gradients, value = result
            _ends(*seen, gradients, value[0] if has_aux else value)
        return result

    return gradient_and_value


def install(patches) -> None:
    owner = private.function_gradient.owner()
    if owner is not None and None not in (private.all_transforms, private.TransformType, private.get_unwrapped, private.tree_leaves):
        patches.put(owner, private.function_gradient.last, _around_gradient)
