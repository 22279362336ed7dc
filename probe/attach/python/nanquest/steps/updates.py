"""Updates of weights: what the library gets before and after an update, and how an update is skipped."""

from __future__ import annotations

import copy
import functools
import math

import torch

from ..base.probe_state import probe
from ..base.say import say
from ..policy.fp32_obstacles import can_skip
from ..pytorch.optimizers import settings_text
from ..pytorch.values import plain_part
from .device_word import DeviceWord
from .loss_scaler import number_in, on_device

FORWARD = 1  # number of the phase in the library


def _rate(groups) -> float:
    """The learning rate of the first group, or a non-finite rate of another group."""
    if not groups:
        return 0.0
    for group in groups[1:]:
        if type(group.get("lr")) is float and not math.isfinite(group["lr"]):
            return group["lr"]
    return number_in(groups[0].get("lr"), 0.0)


def closure_of(args, kwargs):
    """What Optimizer.step is to call for gradients, None if they are there."""
    return args[1] if len(args) > 1 else kwargs.get("closure")


class _Before:
    """Weights and state of an optimizer before a step that computes gradients more than once. If they are computed once, before the
    update, removing them is enough to skip it."""

    def __init__(self, optimizer):
        self.weights = [(p, p.detach().clone()) for group in optimizer.param_groups for p in group["params"]]
        self.state = {key: copy.deepcopy(value) for key, value in optimizer.state.items()}

    def restore(self, optimizer) -> None:
        with torch.no_grad():
            for parameter, value in self.weights:
                parameter.copy_(value)
        optimizer.state.clear()
        optimizer.state.update(self.state)


class Updates:
    def __init__(self, program):
        self._program = program
        self._written, self._scaling = program.written, program.scaling
        self._taken = []  # (parameter, gradient) of an update that is being skipped
        self._left_out = False  # the current update will not be made
        self.word = DeviceWord(program)
        self._before = None  # _Before of a step that may have to be undone
        self._undo = False  # … and must be undone
        self.made = 0  # calls of `before`
        self._at_pass = -1  # passes of the program when the last update began
        self._several = False  # several updates have followed one pass: the program has several optimizers for it
        self.running = False  # between `before` and `after`
        self._told = False

    def _gradients_to_come(self, optimizer) -> list:
        """Of other optimizers that update after the same pass: the library looks at them before it lets the record of the step go."""
        self._several = self._several or self._program.passes == self._at_pass
        self._at_pass = self._program.passes
        if not self._several:
            return []
        others = [other for other in self._written.optimizers() if other is not optimizer]
        found = (
            plain_part(p.grad)
            for other in others
            for group in other.param_groups
            for p in group["params"]
            if p.grad is not None and p.grad.is_cpu
        )
        return [gradient for gradient in found if gradient is not None]

    # Around `Optimizer.step`.

    def before(self, attachment, optimizer, args, kwargs):
        """The result of the optimizer's hook: None, or its arguments with a wrapped closure."""
        self._end_last()
        self.made += 1
        self.running = True
        if self._program.tells_batch:
            self._program.name_replaced()
        follow = callable(closure := closure_of(args, kwargs))
        parameters, weights = self._written.of(optimizer)
        self._written.name_states(attachment, optimizer)  # the program may have put others in their place
        self._program.replicas.before_update(weights)
        policy = self._program.policy
        if policy.withholds and isinstance(optimizer, torch.optim.LBFGS):
            self._before = _Before(optimizer)
        self._left_out = self._scaling.stays = False
        policy.asks_early([optimizer])
        if attachment.rehearsal is not None:
            attachment.rehearsal.before_update(optimizer)
        tensors = weights.tensors(parameters)
        if (settings := weights.other_settings(optimizer)) is not None:
            attachment.ops.setting_changed()
            attachment.ops.note(f"optimizer.{weights.place}", settings_text(settings))
        if weights.first_update():
            attachment.ops.new_optimizer()
        fits = not follow and self.word.fits(optimizer, parameters)
        to_come = self._gradients_to_come(optimizer)
        answer = attachment.ops.before_update(*self._facts(optimizer), tensors, weights.numbers, follow, fits, to_come)
        if self._leaves_out(attachment, answer, in_closure=follow):
            self._skip(optimizer)
        elif fits:
            self.word.put(optimizer)
        if not follow:
            if attachment.rehearsal is not None:
                attachment.rehearsal.gradients_are_there(optimizer)
            return None
        observed = self._observed(attachment, optimizer, closure, lambda: weights.renew(parameters, tensors))
        return ((args[0], observed, *args[2:]), kwargs) if len(args) > 1 else (args, dict(kwargs, closure=observed))

    def _observed(self, attachment, optimizer, closure, renew):
        """The closure, whose forward and backward do not belong to the update, and whose gradients are judged; `renew`: updates the
        gradients that the library has."""

        @functools.wraps(closure)
        def call():
            if attachment.off:
                return closure()
            phase = attachment.handle.nanquest_phase(FORWARD)
            try:
                loss = closure()
            finally:
                attachment.handle.nanquest_phase(phase)
            self._judge(attachment, optimizer, renew)
            return loss

        return call

    def _judge(self, attachment, optimizer, renew) -> None:
        if attachment.off:
            return
        try:
            renew()
            skip = self._leaves_out(attachment, attachment.ops.judge(*self._facts(optimizer)), in_closure=True)
        except Exception as error:  # noqa: BLE001 (a training must not end because of the probe)
            attachment.give_up(f"the probe is off: {type(error).__name__}: {error}")
            return
        if skip and self._before is not None:
            self._undo = self._left_out = True
        elif skip:
            self._skip(optimizer)
        if attachment.rehearsal is not None:
            attachment.rehearsal.gradients_are_there(optimizer)

    def after(self, attachment, optimizer) -> None:
        self.running = False
        self._end_last()
        if self._undo:
            self._before.restore(optimizer)
        self._before, self._undo = None, False
        self._made_or_left_out()
        attachment.heed(attachment.ops.after_update(), of_batch=False)
        self._written.name_states(attachment, optimizer)

    def was_made(self, attachment, optimizer) -> None:
        """An update that was made without asking the probe first: its gradients are judged afterwards."""
        parameters, weights = self._written.of(optimizer)
        facts = self._facts(optimizer, overflow=False)
        attachment.heed(attachment.ops.before_update(*facts, weights.tensors(parameters), weights.numbers, False, False, []))
        attachment.heed(attachment.ops.after_update(), of_batch=False)
        self._written.name_states(attachment, optimizer)

    def _leaves_out(self, attachment, answer: str, in_closure: bool = False) -> bool:
        """Whether to skip the update."""
        told = attachment.heed(answer)
        policy = self._program.policy
        if attachment.rehearsal is not None and attachment.rehearsal.leaves_out():
            self._scaling.stays = True
            return True
        # Ranks may call their closures a different number of times, so they can't vote here.
        if not (told and policy.agrees(told) if in_closure else policy.leaves_out(told)):
            return False
        self._scaling.stays = told is None or not told["scale_overflow"]
        return True

    def _made_or_left_out(self) -> None:
        policy = self._program.policy
        if not policy.withholds:
            return
        if self._left_out:
            self._left_out = False
            policy.left_out(self._program.attached.ops.step(), self._written.optimizers())
            return
        policy.undo.forget()
        if probe.fallback is not None:
            probe.fallback.update_made()

    def _facts(self, optimizer, overflow=None):
        """Learning rate, loss scale, and whether a scaler that works inside the optimizer found an overflow (`overflow`, if that is known);
        then the latter two as tensors if a device holds them: the library reads them without another wait."""
        found = getattr(optimizer, "found_inf", None) if overflow is None else None
        found_there = on_device(found)
        overflow = bool(overflow) or (found_there is None and number_in(found, 0.0) > 0)
        if probe.fallback is not None:  # scalers do nothing then, whatever their scale
            return _rate(optimizer.param_groups) * probe.fallback.rates.to_come(optimizer), 1.0, overflow, None, found_there
        scale_there = self._scaling.scale_on_device()
        scale = self._scaling.scale() if scale_there is None else 1.0
        return _rate(optimizer.param_groups), scale, overflow, scale_there, found_there

    def _skip(self, optimizer) -> None:
        if not can_skip(optimizer):
            if not self._told:
                say(f"{type(optimizer).__name__}.step is not PyTorch's own, so its updates can't be skipped")
                self._told = True
            return
        self._left_out = True
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._taken.append((parameter, parameter.grad))
                    parameter.grad = None

    def leaves_out_in_region(self, can: bool) -> bool:
        """Whether to skip the update of a compiled graph that has begun. `can`: whether the graph can be skipped."""
        if self._left_out and not can:
            self._left_out = False
            say(
                "an update compiled by torch.compile can't be skipped in the step in which the optimizer creates its state; the update is made"
            )
        return self._left_out

    def _end_last(self) -> None:
        """What the program's own is goes back to it; it may read its gradients after the update."""
        self.word.take_back()
        while self._taken:
            parameter, gradient = self._taken.pop()
            if parameter.grad is None:
                parameter.grad = gradient

    def scaled_step(self, scaler) -> int:
        """GradScaler.step begins. The result is for scaler_skipped."""
        self._scaling.begins_step(scaler)
        return self.made

    def scaler_skipped(self, attachment, optimizer, updates) -> None:
        """After GradScaler.step: if the optimizer was not called, the scaler has found an overflow."""
        self._scaling.ends_step()
        if self.made != updates:
            return
        if self._program.tells_batch:
            self._program.name_replaced()
        parameters, weights = self._written.of(optimizer)
        self.left_out(attachment, optimizer, weights.tensors(parameters), weights.numbers, True)

    def left_out(self, attachment, optimizer, tensors, numbers, overflow) -> None:
        """An update of these was skipped: its gradients are judged. `overflow`: a loss scaler has found one, and handles it."""
        self._scaling.stays = False
        answer = attachment.ops.before_update(*self._facts(optimizer, overflow), tensors, numbers, False, False, [])
        self._left_out = self._leaves_out(attachment, answer)
        self._made_or_left_out()
        attachment.heed(attachment.ops.after_update(), of_batch=False)
        if attachment.rehearsal is not None:
            attachment.rehearsal.after_update()
