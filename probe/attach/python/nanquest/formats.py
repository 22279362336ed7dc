"""What the fp32 fallback puts in PyTorch's way for the rest of the run: autocast and loss scalers that do nothing, a smaller
learning rate around each update, inputs as wide as the weights. Nothing of it is there before the fallback, and none of it
asks the probe, which may be off by then."""

from __future__ import annotations

import collections
import functools

import torch
from torch.optim import optimizer as optimizers

from .patches import Patches

LOW = (torch.float16, torch.bfloat16)


def _update(own):
    def update(self, new_scale=None):
        # Whatever was noted before the fallback must not stand in the way should the scaler come back.
        getattr(self, "_per_optimizer_states", {}).clear()
    return update


_SCALER = {
    "scale": lambda own: lambda self, outputs: outputs,
    "unscale_": lambda own: lambda self, optimizer: None,
    "step": lambda own: lambda self, optimizer, *args, **kwargs: optimizer.step(*args, **kwargs),
    "get_scale": lambda own: lambda self: 1.0,
    "update": _update,
}


class Rates:
    """The learning rate of every group times a factor, from an update's begin to its end: schedulers never see it."""

    def __init__(self, factor: float):
        self.factor = factor
        self._own = []       # (group, its rate, that rate times the factor) while an update is made

    def before(self, optimizer, args, kwargs) -> None:
        self._restore()      # of an update that raised
        for group in optimizer.param_groups:
            own = group.get("lr")
            if isinstance(own, (float, int, torch.Tensor)):
                group["lr"] = smaller = own * self.factor
                self._own.append((group, own, smaller))

    def after(self, optimizer, args, kwargs) -> None:
        self._restore()

    def _restore(self) -> None:
        while self._own:
            group, own, smaller = self._own.pop()
            if group.get("lr") is smaller:  # else the program has set another meanwhile
                group["lr"] = own


def wide(value, depth=0):
    """fp16 and bf16 tensors in it as fp32; anything else as it is."""
    if isinstance(value, torch.Tensor):
        return value.float() if value.dtype in LOW else value
    if depth < 3 and type(value) in (list, tuple):
        return type(value)(wide(each, depth + 1) for each in value)
    if depth < 3 and type(value) is dict:
        return {key: wide(each, depth + 1) for key, each in value.items()}
    return value


class Formats:
    """All of it at once."""

    def __init__(self, factor: float):
        self._open = collections.Counter()  # devices of the autocast contexts that the program is in
        self._patches = Patches()
        self._rates = Rates(factor)
        self._handles = []

    def put(self) -> None:
        for name, change in (("__enter__", 1), ("__exit__", -1)):
            self._patches.put(torch.amp.autocast_mode.autocast, name, functools.partial(self._around_switch, change))
        for name, around in _SCALER.items():
            self._patches.put(torch.amp.GradScaler, name, around)
        for device in torch._C._autocast_supported_devices():
            if torch.is_autocast_enabled(device):
                self._open[device] += 1
                torch.set_autocast_enabled(device, False)
        torch.clear_autocast_cache()
        self._handles = [optimizers.register_optimizer_step_pre_hook(self._rates.before),
                         optimizers.register_optimizer_step_post_hook(self._rates.after)]

    def _around_switch(self, change, own):
        """Of autocast's __enter__ and __exit__, also of contexts that were made or entered before."""
        def switch(context, *args):
            result = own(context, *args)
            if context._enabled:
                self._open[context.device] += change
            torch.set_autocast_enabled(context.device, False)
            return result
        return switch

    def undo(self) -> None:
        self._patches.undo()
        for device, contexts in self._open.items():
            if contexts > 0:
                torch.set_autocast_enabled(device, True)
        while self._handles:
            self._handles.pop().remove()
