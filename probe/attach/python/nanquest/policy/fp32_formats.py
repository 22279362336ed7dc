"""What the fp32 fallback changes in PyTorch for the rest of the run: autocast and loss scalers do nothing, and the learning rate is
lower during each update. Nothing is changed before the fallback. All of it also works when the probe is off."""

from __future__ import annotations

import collections
import functools
import weakref

import torch

from ..base.patches import Patches
from ..pytorch import private


def _update(own):
    def update(self, new_scale=None):
        # State from before the fallback must not affect the scaler if it is used again.
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
    """Changes the learning rate of every group, or other settings, from an update's beginning to its end: schedulers never see it.
    Updates of several optimizers may be nested, or run on several threads."""

    def __init__(self, factor: float = 1.0, changes: dict | None = None):
        self._factor = factor
        # Name of a setting -> function from its value to the new one.
        self._changes = changes if changes is not None else {"lr": lambda rate: rate * factor}
        # Optimizers that are in an update: [(group, name, value before, value during the update)].
        self._own = weakref.WeakKeyDictionary()

    def to_come(self, optimizer) -> float:
        """The factor for the optimizer's present learning rates: 1 while it is applied already."""
        return 1.0 if optimizer in self._own else self._factor

    def before(self, optimizer) -> None:
        self.after(optimizer)  # of an update that raised
        own = self._own[optimizer] = []
        for group in optimizer.param_groups:
            for name, change in self._changes.items():
                value = group.get(name)
                if isinstance(value, (float, int, tuple, torch.Tensor)):
                    group[name] = changed = change(value)
                    own.append((group, name, value, changed))

    def after(self, optimizer) -> None:
        for group, name, own, changed in self._own.pop(optimizer, ()):
            if group.get(name) is changed:  # otherwise the program has set another value meanwhile
                group[name] = own

    def end(self) -> None:
        for optimizer in list(self._own):
            self.after(optimizer)


class Formats:
    """Undoes all of it at once."""

    def __init__(self, factor: float):
        self._open = collections.Counter()  # devices of the autocast contexts that are active
        self._patches = Patches()
        self.rates = Rates(factor)

    def put(self) -> None:
        for name, change in (("__enter__", 1), ("__exit__", -1)):
            self._patches.put(torch.amp.autocast_mode.autocast, name, functools.partial(self._around_switch, change))
        for name, around in _SCALER.items():
            self._patches.put(torch.amp.GradScaler, name, around)
        for device in private.autocast_devices():
            if torch.is_autocast_enabled(device):
                self._open[device] += 1
                torch.set_autocast_enabled(device, False)
        torch.clear_autocast_cache()

    def _around_switch(self, change, own):
        """Around autocast's __enter__ and __exit__, also of contexts that were made or entered before."""

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
        self.rates.end()
