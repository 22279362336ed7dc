"""Backward passes. The tensor that one starts from is the loss."""

from __future__ import annotations

import sys
import threading

import torch

from ..pytorch.guarded import elsewhere, guarded, in_backward
from ..pytorch.names import is_plain, leaves_below, names_in_frames
from ..steps.program import known_program


@guarded
def _begins(attached, roots, accumulates):
    """True if the pass is one of the program: not inside another pass, not under a transform."""
    if in_backward() or elsewhere():
        return False
    if not attached.started and (threading.current_thread() is not threading.main_thread() or not attached.start()):
        return False
    if accumulates:
        _name_bare_leaves(attached, roots)
    losses = [r for r in roots if isinstance(r, torch.Tensor) and r.numel() == 1 and is_plain(r)]
    attached.ops.begin_backward(losses, accumulates)
    if accumulates and attached.learning is not None:
        attached.learning.backward_begins(roots)
    if known_program().policy.withholds:
        attached.handle.nanquest_pass(1)
    return True


@guarded
def _is_on_the_way(attached):
    """A gradient was computed that will be differentiated again: an inner step, a gradient penalty."""
    if attached.started and not in_backward() and not elsewhere():
        known_program().passes = 0
        attached.ops.inner_gradient()


def _name_bare_leaves(attached, roots):
    """A program without modules and optimizers trains leaves of its graph, named by the variables in its frames. Done once."""
    program = known_program()
    if program.saw_weights:
        return
    program.saw_weights = True
    leaves = [leaf for leaf in leaves_below(roots) if is_plain(leaf)]
    program.name_models_again(leaves)  # a model whose calls were not seen, because its caller is compiled too
    leaves = [leaf for leaf in leaves if program.numbers.of(leaf) is None]
    for leaf, name in zip(leaves, names_in_frames(leaves, sys._getframe(1))):
        attached.ops.name_parameter(name, leaf)


@guarded
def _ends(attached):
    program = known_program()
    program.passes = 0
    if program.policy.withholds:
        attached.handle.nanquest_pass(0)
    attached.ops.end_backward()


def _around_engine(own):
    def run(roots, grad_outputs=None, retain_graph=False, create_graph=False, *args, **kwargs):
        # A gradient that is differentiated again is not the gradient of the step.
        accumulates = bool(kwargs.get("accumulate_grad", False))
        seen = (accumulates or not create_graph) and _begins(roots, accumulates)
        try:
            return own(roots, grad_outputs, retain_graph, create_graph, *args, **kwargs)
        finally:
            if seen:
                _ends()
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
