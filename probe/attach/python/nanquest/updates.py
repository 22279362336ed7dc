"""Updates of weights: what the probe is told before and after an update, and how an update is skipped."""

from __future__ import annotations

import copy
import functools
import math
import weakref

import torch

from . import fallback
from .naming import is_plain
from .obstacles import can_skip
from .settings import say

FORWARD = 1  # the phase, as the library numbers it


def _number(value, otherwise: float) -> float:
    """A float out of a number or a tensor. The gate waits for the device anyway."""
    if type(value) is float:
        return value
    if isinstance(value, torch.Tensor):
        return float(value) if value.numel() == 1 else otherwise
    return float(value) if isinstance(value, (int, float)) else otherwise


def _rate(groups) -> float:
    """The learning rate of the first group, or one of another group that is no number at all."""
    if not groups:
        return 0.0
    for group in groups[1:]:
        if type(group.get("lr")) is float and not math.isfinite(group["lr"]):
            return group["lr"]
    return _number(groups[0].get("lr"), 0.0)


class _Before:
    """Weights and state of an optimizer as they were before a step that computes its gradients more than once. Where they
    are computed once, before the update, it is enough to take them away."""

    def __init__(self, optimizer):
        self.weights = [(p, p.detach().clone()) for group in optimizer.param_groups for p in group["params"]]
        self.state = {key: copy.deepcopy(value) for key, value in optimizer.state.items()}

    def restore(self, optimizer) -> None:
        with torch.no_grad():
            for parameter, value in self.weights:
                parameter.copy_(value)
        optimizer.state.clear()
        optimizer.state.update(self.state)


class _Weights:
    """The weights of one optimizer, and the library's numbers for those that it can look at."""

    def __init__(self, optimizer, ids, numbers, names):
        self.optimizer = weakref.ref(optimizer)
        self.ids, self.names = ids, names
        self.state = None    # what the optimizer's state looked like when it was named
        self._seen = [number >= 0 for number in numbers]
        self._all_seen = all(self._seen)
        own = -2 - id(optimizer) % (1 << 62)
        # An optimizer of others only must still be told from the next one.
        self.numbers = [number for number in numbers if number >= 0] or [own]

    def tensors(self, parameters):
        return parameters if self._all_seen else [p for p, seen in zip(parameters, self._seen) if seen]


class Updates:
    def __init__(self, program):
        self._program = program
        self._weights = {}      # id of an optimizer -> _Weights
        self._taken = []        # (parameter, gradient) of an update that is being skipped
        self._left_out = False  # the update that is being made is none
        self._scale_stays = False  # … and the scaler is not to learn from it
        self._before = None     # _Before of a step that may have to be undone
        self._undo = False      # … and has to be
        self._updates = 0       # calls of `before`
        self._scaler = None     # weak: the loss scaler that works on this step's gradients
        self._scale_named = 0   # id of the scaler's tensor that has a name
        self._unscaled = None   # weak: the optimizer whose gradients it has unscaled
        self._told = False

    # What an optimizer is about to write.

    def numbered(self, parameters):
        """(tensors, numbers) for the library: those of them that it knows."""
        parameters = [parameters] if isinstance(parameters, torch.Tensor) else parameters
        known = [(p, self._program.numbers.of(p)) for p in parameters if isinstance(p, torch.Tensor)]
        known = [(p, entry[0]) for p, entry in known if entry is not None and entry[0] >= 0]
        return [p for p, _ in known], [number for _, number in known]

    def _of(self, optimizer):
        groups = optimizer.param_groups
        parameters = groups[0]["params"] if len(groups) == 1 else [p for group in groups for p in group["params"]]
        ids = [*map(id, parameters)]
        weights = self._weights.get(id(optimizer))
        if weights is None or weights.ids != ids or weights.optimizer() is not optimizer:
            self._weights = {key: kept for key, kept in self._weights.items() if kept.optimizer() is not None}
            weights = self._weights[id(optimizer)] = self._number(optimizer, ids)
        return parameters, weights

    def _number(self, optimizer, ids) -> _Weights:
        numbers = self._program.numbers
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        if any(numbers.of(p) is None for p in parameters):
            self._program.name_models_again(parameters)
        found = []
        for g, group in enumerate(optimizer.param_groups):
            for i, parameter in enumerate(group["params"]):
                if numbers.of(parameter) is None:
                    self._program.name_parameter(f"group{g}.{i}", parameter, optimizer, (g, i))
                found.append(numbers.of(parameter) or (-1, ""))
        return _Weights(optimizer, ids, [number for number, _ in found], [name for _, name in found])

    # Around `Optimizer.step`.

    def before(self, attachment, optimizer, args, kwargs):
        """What the optimizer's hook returns: None, or its arguments with a closure that is looked at."""
        if self._taken:
            self._give_back()
        self._updates += 1
        if self._program.tells_batch:
            self._program.name_replaced()
        closure = args[1] if len(args) > 1 else kwargs.get("closure")
        follow = callable(closure)
        parameters, weights = self._of(optimizer)
        policy = self._program.policy
        if policy.withholds and isinstance(optimizer, torch.optim.LBFGS):
            self._before = _Before(optimizer)
        self._left_out = self._scale_stays = False
        policy.asks_early([optimizer])
        answer = attachment.ops.before_update(*self._facts(optimizer), weights.tensors(parameters), weights.numbers,
                                             follow)
        if self._is_bad(attachment, answer):
            self._skip(optimizer)
        if not follow:
            return None
        observed = self._observed(attachment, optimizer, closure)
        return ((args[0], observed, *args[2:]), kwargs) if len(args) > 1 else (args, dict(kwargs, closure=observed))

    def _observed(self, attachment, optimizer, closure):
        """The closure, whose forward and backward are no part of the update, and whose gradients are judged."""
        @functools.wraps(closure)
        def call():
            if attachment.off:
                return closure()
            phase = attachment.handle.nanquest_phase(FORWARD)
            try:
                loss = closure()
            finally:
                attachment.handle.nanquest_phase(phase)
            self._judge(attachment, optimizer)
            return loss
        return call

    def _judge(self, attachment, optimizer) -> None:
        if attachment.off:
            return
        try:
            skip = self._is_bad(attachment, attachment.ops.judge(*self._facts(optimizer)))
        except Exception as error:  # noqa: BLE001: a training must not end because of the probe
            attachment.give_up(f"the probe is off: {type(error).__name__}: {error}")
            return
        if skip and self._before is not None:
            self._undo = self._left_out = True
        elif skip:
            self._skip(optimizer)

    def after(self, attachment, optimizer) -> None:
        if self._taken:
            self._give_back()
        if self._undo:
            self._before.restore(optimizer)
        self._before, self._undo = None, False
        self._made_or_left_out()
        attachment.heed(attachment.ops.after_update())
        self._name_states(attachment, optimizer)

    def _is_bad(self, attachment, answer: str) -> bool:
        """Whether the update is to be left out."""
        told = attachment.heed(answer)
        if not told or not self._program.policy.agrees(told):
            return False
        self._scale_stays = not told["scale_overflow"]
        return True

    def _made_or_left_out(self) -> None:
        policy = self._program.policy
        if not policy.withholds:
            return
        if self._left_out:
            self._left_out = False
            policy.left_out(self._program.attached.ops.step(), self.optimizers())
            return
        policy.undo.forget()
        if fallback.taken is not None:
            fallback.taken.update_made()

    def optimizers(self) -> list:
        """Those that have made an update."""
        known = (weights.optimizer() for weights in self._weights.values())
        return [optimizer for optimizer in known if optimizer is not None]

    def _facts(self, optimizer):
        """Learning rate, loss scale, and whether a scaler that works inside the optimizer found an overflow."""
        found = _number(optimizer.found_inf, 0.0) if hasattr(optimizer, "found_inf") else 0.0
        if fallback.taken is not None:  # scalers do nothing then, whatever they hold
            return _rate(optimizer.param_groups) * fallback.taken.rates.to_come(optimizer), 1.0, found > 0
        scaler = self._scaler() if self._scaler is not None else None
        scale = _number(getattr(scaler, "_scale", None), 1.0) if scaler is not None else 1.0
        return _rate(optimizer.param_groups), scale, found > 0

    def _skip(self, optimizer) -> None:
        if not can_skip(optimizer):
            if not self._told:
                say(f"{type(optimizer).__name__}.step is not PyTorch's own, so its updates are not skipped")
                self._told = True
            return
        self._left_out = True
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._taken.append((parameter, parameter.grad))
                    parameter.grad = None

    def _give_back(self) -> None:
        """The gradients are the program's: it may look at them after the update."""
        while self._taken:
            parameter, gradient = self._taken.pop()
            if parameter.grad is None:
                parameter.grad = gradient

    # A loss scaler's part.

    def scales_with(self, attachment, scaler) -> None:
        """Names the tensor that holds the scale, once."""
        scale = getattr(scaler, "_scale", None)
        if scale is None or self._scale_named == id(scale) or not is_plain(scale):
            return
        self._scale_named = id(scale)
        attachment.ops.name_tensor("scale", "loss_scale", scale)

    def unscaled(self, scaler, optimizer) -> None:
        self._scaler, self._unscaled = weakref.ref(scaler), weakref.ref(optimizer)

    def scaler_found_overflow(self) -> bool:
        """Whether the gradients that were unscaled last hold NaN or Inf: the scaler will skip that update."""
        scaler = self._scaler() if self._scaler is not None else None
        optimizer = self._unscaled() if self._unscaled is not None else None
        if scaler is None or optimizer is None:
            return False
        state = scaler._per_optimizer_states.get(id(optimizer), {})
        return any(_number(found, 0.0) > 0 for found in state.get("found_inf_per_device", {}).values())

    def scaled_step(self, scaler) -> int:
        self._scaler = weakref.ref(scaler)
        return self._updates

    def scaler_skipped(self, attachment, optimizer, updates) -> None:
        """After GradScaler.step: if the optimizer was not asked, the scaler has found an overflow."""
        self._unscaled = None
        if self._updates != updates:
            return
        if self._program.tells_batch:
            self._program.name_replaced()
        parameters, weights = self._of(optimizer)
        rate, scale, _ = self._facts(optimizer)
        self._scale_stays = False
        answer = attachment.ops.before_update(rate, scale, True, weights.tensors(parameters), weights.numbers, False)
        self._left_out = self._is_bad(attachment, answer)
        self._made_or_left_out()
        attachment.heed(attachment.ops.after_update())

    def scale_stays(self, scaler) -> bool:
        """Whether this scaler is not to lower its scale for a batch that is bad at any scale, and was left out."""
        if not self._scale_stays or self._scaler is None or self._scaler() is not scaler:
            return False
        self._scale_stays = False
        scaler._per_optimizer_states.clear()
        return True

    # Names of what the optimizer keeps.

    def name_states_again(self) -> None:
        for weights in self._weights.values():
            weights.state = None

    def _name_states(self, attachment, optimizer) -> None:
        states = optimizer.state
        first = next(iter(states.values()), None)
        if not isinstance(first, dict):
            return
        look = [len(states)]
        for value in first.values():
            if isinstance(value, torch.Tensor):
                look.append(id(value))
        weights = self._weights.get(id(optimizer))
        if weights is not None and weights.state == look and weights.optimizer() is optimizer:
            return
        parameters, weights = self._of(optimizer)
        weights.state = look
        for parameter, name in zip(parameters, weights.names):
            state = optimizer.state.get(parameter)
            if not name or not isinstance(state, dict):
                continue
            for key, value in state.items():
                if isinstance(value, torch.Tensor) and is_plain(value):
                    attachment.ops.name_tensor("state", f"{key}.{name}", value)
