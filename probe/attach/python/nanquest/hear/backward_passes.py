"""Backward passes. The tensor that one starts from is the loss."""

from __future__ import annotations

import torch

from ..pytorch.guarded import elsewhere, guarded, in_backward
from ..pytorch.names import is_plain
from ..steps.program import known_program


@guarded
def _begins(attached, roots, inputs, accumulates):
    """(lane, weights) if the pass is one of the program: not inside another pass, not under a transform. The weights are those that the
    program trains by hand; without such the lane is None."""
    if in_backward() or elsewhere():
        return None
    if not attached.observes():
        return None
    program, trained = known_program(), None
    if program.by_hand.applies():
        attached.heed(attached.ops.derives([]))
        trained = program.by_hand.lane_of(inputs or (program.by_hand.leaves_of(roots) if accumulates else ()), roots)
        if trained is None and accumulates and not inputs and (weights := program.by_hand.weights_of_models()):
            trained = program.by_hand.lane_of(weights)
    losses = [r for r in roots if isinstance(r, torch.Tensor) and r.numel() == 1 and is_plain(r)]
    if trained is not None and trained[0].moves and not accumulates:
        # It may be a sampler: the number has no usual range, and is told only with what it spoils.
        found = attached.ops.non_finite(losses)
        losses = [loss for loss, nan, infinite in zip(losses, found[::2], found[1::2]) if nan or infinite]
    attached.ops.begin_backward(losses, accumulates)
    if accumulates and attached.learning is not None:
        attached.learning.backward_begins(roots)
    if program.policy.withholds:
        attached.handle.nanquest_pass(1)
    return trained or (None, ())


@guarded
def _is_on_the_way(attached):
    """A gradient was computed that will be differentiated again: an inner step, a gradient penalty."""
    if attached.started and not in_backward() and not elsewhere():
        known_program().passes = 0
        attached.ops.inner_gradient()


@guarded
def _ends(attached, lane, weights, inputs, gradients, accumulates):
    program = known_program()
    program.passes = 0
    if program.policy.withholds:
        attached.handle.nanquest_pass(0)
    attached.ops.end_backward()
    if lane is None:
        return
    if accumulates:
        gradients = [weight.grad for weight in weights]
    elif gradients is not None:
        wanted = {id(weight) for weight in weights}
        gradients = [gradient for tensor, gradient in zip(inputs, gradients) if id(tensor) in wanted]
    program.by_hand.derivative_taken(lane, weights)
    attached.ops.derived(lane.number, weights, [it for it in gradients or () if it is not None], accumulates or not lane.moves)
    attached.step_may_be_made()


def _around_engine(own):
    def run(roots, grad_outputs=None, retain_graph=False, create_graph=False, *args, **kwargs):
        # A gradient that is differentiated again is not the gradient of the step.
        accumulates = bool(kwargs.get("accumulate_grad", False))
        inputs = args[0] if args else kwargs.get("inputs", ())
        seen = _begins(roots, inputs, accumulates) if accumulates or not create_graph else None
        gradients = None
        try:
            gradients = own(roots, grad_outputs, retain_graph, create_graph, *args, **kwargs)
            return gradients
        finally:
            if seen is not None:
                _ends(*seen, inputs, gradients, accumulates)
            elif create_graph and not accumulates:
                _is_on_the_way()

    return run


@guarded
def _cleared(attached):
    if attached.started:
        attached.ops.gradients_cleared()


def _around_zero_grad(own):
    def zero_grad(self, *args, **kwargs):
        _cleared()
        return own(self, *args, **kwargs)

    return zero_grad


def install(patches) -> None:
    patches.put(torch.autograd, "_engine_run_backward", _around_engine)
    patches.put(torch.optim.Optimizer, "zero_grad", _around_zero_grad)
    patches.put(torch.nn.Module, "zero_grad", _around_zero_grad)
