"""The optimizer's door: what the probe is told before and after an update, and how an update is skipped."""

from __future__ import annotations

import weakref

import torch

from .naming import is_plain
from .settings import say


def _number(value, otherwise: float) -> float:
    """A float out of a number or of a tensor that is on the CPU: reading another would wait for the device."""
    if isinstance(value, torch.Tensor):
        return float(value) if value.numel() == 1 and value.device.type == "cpu" else otherwise
    return float(value) if isinstance(value, (int, float)) else otherwise


def _can_skip(optimizer) -> bool:
    """Whether `step` leaves parameters without a gradient, and their state, alone: so do PyTorch's own."""
    return type(optimizer).step.__module__.startswith("torch.optim")


class UpdateDoor:
    def __init__(self, name_parameter):
        self._name_parameter = name_parameter
        self._names = {}        # id of a parameter -> (weak reference, name)
        self._states = {}       # id of an optimizer -> what its state looked like when it was named
        self._taken = []        # (parameter, gradient) of an update that is being skipped
        self._late = set()      # ids of optimizers that compute the gradients themselves
        self._told = False

    def know(self, parameter, name: str) -> None:
        self._names[id(parameter)] = (weakref.ref(parameter), name)

    def name_of(self, parameter):
        entry = self._names.get(id(parameter))
        return entry[1] if entry is not None and entry[0]() is parameter else None

    def before(self, attachment, optimizer, args, kwargs) -> None:
        self._give_back()
        for g, group in enumerate(optimizer.param_groups):
            for i, parameter in enumerate(group["params"]):
                if self.name_of(parameter) is None:
                    self.know(parameter, f"group{g}.{i}")
                    self._name_parameter(f"group{g}.{i}", parameter)
        closure = args[1] if len(args) > 1 else kwargs.get("closure")
        if callable(closure):
            self._late.add(id(optimizer))  # there are no gradients yet
            return
        self._late.discard(id(optimizer))
        if attachment.heed(self._ask(attachment, optimizer)):
            self._skip(optimizer)

    def after(self, attachment, optimizer) -> None:
        self._give_back()
        if id(optimizer) in self._late:
            self._late.discard(id(optimizer))
            attachment.heed(self._ask(attachment, optimizer))
        attachment.heed(attachment.ops.after_update())
        self._name_states(attachment, optimizer)

    def _ask(self, attachment, optimizer) -> str:
        # GradScaler hands these to optimizers that unscale by themselves.
        found = _number(getattr(optimizer, "found_inf", None), 0.0)
        scale = _number(getattr(optimizer, "grad_scale", None), 1.0)
        rate = _number(optimizer.param_groups[0].get("lr"), 0.0) if optimizer.param_groups else 0.0
        return attachment.ops.before_update(rate, scale, found > 0)

    def _skip(self, optimizer) -> None:
        if not _can_skip(optimizer):
            if not self._told:
                say(f"{type(optimizer).__name__}.step is not PyTorch's own, so its updates are not skipped")
                self._told = True
            return
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

    def _name_states(self, attachment, optimizer) -> None:
        first = next(iter(optimizer.state.values()), None)
        if not isinstance(first, dict):
            return
        look = (len(optimizer.state), *(id(value) for value in first.values() if isinstance(value, torch.Tensor)))
        if self._states.get(id(optimizer)) == look:
            return
        self._states[id(optimizer)] = look
        for parameter, state in optimizer.state.items():
            name = self.name_of(parameter) if isinstance(parameter, torch.Tensor) else None
            if name is None or not isinstance(state, dict):
                continue
            for key, value in state.items():
                if isinstance(value, torch.Tensor) and is_plain(value):
                    attachment.ops.name_tensor("state", f"{key}.{name}", value)
