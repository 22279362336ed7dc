"""Which module of the program runs, and where a step begins.

torch.nn.Module.__call__ is replaced. Global module hooks would send every call through the slow path of _call_impl, torch.compile
warns of them, and they don't get keyword arguments.
"""

from __future__ import annotations

from threading import get_ident

import torch
from torch.compiler import is_compiling

from ..base.probe_state import probe
from ..policy import fp32_inputs
from ..pytorch.guarded import elsewhere, failed, in_backward
from ..pytorch.names import is_plain, unwrap
from ..steps.program import known_program


def _begin(attachment, module, args, kwargs):
    """A model is called from outside any module."""
    if in_backward() or elsewhere():
        return
    root = unwrap(module)
    if probe.program is not None and attachment.started:
        probe.program.meets(root)
    if not torch.is_grad_enabled():
        _begin_aside(attachment, root, args, kwargs)
        return
    if not attachment.started:
        # A thread other than the main thread is taken for the training thread at its first update.
        if not any(p.requires_grad for p in root.parameters()) or not attachment.observes():
            return
    program = known_program()
    trained = program.trains(root)
    if trained:
        if attachment.learning is not None:
            attachment.learning.step_ends(program)
        by_hand = program.saw_model  # no optimizer has stepped since the last pass
        if by_hand and program.by_hand.may_have_updated():
            weights = program.by_hand.weights_of_models()
            attachment.heed(attachment.ops.derives(weights))
            program.by_hand.name_again(weights)
        program.saw_model = True
        # A cell that is called with its own last output continues the same pass. An input that was computed from a weight outside
        # of any module (a learned prompt) begins a pass, like a batch.
        if not (_computed(args) or _computed(kwargs.values())) or attachment.ops.between_steps():
            if program.policy.falls_back_after is not None and attachment.ops.between_steps():
                program.policy.step_begins()
            told = attachment.heed(attachment.ops.begin_forward())
            if told and program.policy.agrees(told):
                program.policy.left_out(told["step"], program.written.optimizers())
            elif told:
                program.policy.undo.forget()
            program.passes += 1
            if by_hand:
                attachment.step_may_be_made()
            if attachment.drawing is not None:
                program.names_samples(args, kwargs)
    elif attachment.ops.between_steps():
        attachment.ops.begin_aside()
    if trained or (program.paths.of(root) is None and next(iter(root.parameters()), None) is not None):
        program.name_model(root)
    if trained and attachment.loads is not None:
        attachment.loads.first_pass(program, root)
    if trained and program.policy.withholds:
        program.called_as.add(type(module))
        program.parallel = program.parallel or type(module).__name__ == "DistributedDataParallel"
        program.policy.undo.begins()
    if trained and attachment.rehearsal is not None:
        attachment.rehearsal.first_pass(program)
    if trained and program.tells_batch:
        program.name_replaced()
    if program.tells_batch:
        for name, tensor in program.arguments.of(root, () if program.fed else args, kwargs):
            attachment.ops.name_tensor("batch", name, tensor)


def _begin_aside(attachment, root, args, kwargs):
    """A model is called without gradients. A model that an optimizer writes is being evaluated. Another model (a teacher, a target
    network, a frozen encoder) may compute inputs of the coming step, and then its call belongs to that step."""
    program = probe.program
    if program is None or not attachment.started or not program.tells_batch:
        return
    if not attachment.ops.between_steps() or program.updates_it(root):
        return
    attachment.ops.begin_aside()
    if program.paths.of(root) is None and next(iter(root.parameters()), None) is not None:
        program.name_model(root)
    program.name_replaced()
    for name, tensor in program.arguments.of(root, args, kwargs):
        attachment.ops.name_tensor("batch", name, tensor)


def _computed(values) -> bool:
    """Whether one of these is the result of a recorded computation."""
    for value in values:
        if isinstance(value, torch.Tensor) and value.grad_fn is not None:
            return True
    return False


_PASSES = 16  # after so many passes without a backward, check whether one can still follow


def _keep_in_sight(attachment, result, depth=0):
    """Tells the library the result of a forward pass: it may be differentiated as long as its graph is alive. A rollout keeps its
    results alive, an evaluation does not."""
    if isinstance(result, torch.Tensor):
        if result.grad_fn is None or not is_plain(result):
            return False
        attachment.ops.made_by_pass(result)
        return True
    values = result.values() if isinstance(result, dict) else result if isinstance(result, (tuple, list)) else ()
    return depth < 3 and any(_keep_in_sight(attachment, value, depth + 1) for value in values)


def _safely(attachment, hook, *args) -> None:
    """Like `guarded`, for callers that know the probe is observing."""
    try:
        hook(*args)
    except Exception as error:  # noqa: BLE001 (a training must not end because of the probe)
        failed(attachment, hook, error)


def _around_call(own):
    def module_call(self, *args, **kwargs):
        """It runs at every module call: keep it short."""
        if is_compiling():
            return own(self, *args, **kwargs)
        given = None
        if probe.wide_modules is not None:
            given, (args, kwargs) = (args, kwargs), fp32_inputs.inputs(self, args, kwargs)
        attachment = probe.attachment
        if (
            attachment is None
            or attachment.off
            or (attachment.thread is not None and attachment.thread != get_ident())
            or probe.module_call is not module_call
        ):
            return own(self, *args, **kwargs)
        seen = probe.program
        if seen is None or not seen.depth:
            _safely(attachment, _begin, attachment, self, args, kwargs)
            seen = probe.program
            if seen is None or attachment.off:
                return own(self, *args, **kwargs)
        elif not seen.tells_modules:
            if id(self) not in seen.paths.known:
                _safely(attachment, seen.met_stranger)
            return own(self, *args, **kwargs)
        depth = seen.depth
        seen.depth = depth + 1
        known = seen.paths.of(self) if seen.tells_modules else None
        if known is None and depth:
            _safely(attachment, seen.met_stranger)
            known = seen.paths.of(self)
        if known is not None:
            attachment.handle.nanquest_push(*known)
        outermost = not depth and seen.policy.withholds
        if outermost:
            attachment.handle.nanquest_pass(1)
        try:
            if outermost and probe.fallback is not None:
                given = given or (args, kwargs)
                wide = [*fp32_inputs.inputs(self, args, kwargs)]  # asked again: `_begin` may have ended it
                del args, kwargs  # the call below may have to free them
                result = probe.fallback.call(own, self, given, wide)
            else:
                result = own(self, *args, **kwargs)
        finally:
            seen.depth = depth
            if known is not None:
                attachment.handle.nanquest_pop()
            if outermost:
                attachment.handle.nanquest_pass(0)
        if not depth and seen.passes and not seen.passes % _PASSES:
            _safely(attachment, _keep_in_sight, attachment, result)
        return result

    module_call.own = own
    return module_call


def install() -> None:
    if probe.module_call is None or torch.nn.Module.__call__ is not probe.module_call:
        probe.module_call = _around_call(torch.nn.Module.__call__)
        torch.nn.Module.__call__ = probe.module_call


def remove() -> None:
    """If another package replaced __call__ after us, it calls module_call, which stays and only passes the call on. It also stays while
    inputs must be converted for weights that the fallback made fp32."""
    if torch.nn.Module.__call__ is probe.module_call and probe.wide_modules is None:
        torch.nn.Module.__call__, probe.module_call = probe.module_call.own, None
