"""The loss scaler that works on a step's gradients."""

from __future__ import annotations

import math
import weakref

import torch

from ..pytorch.names import is_plain


def number_in(value, otherwise: float) -> float:
    """A number or a tensor as float. The gate waits for the device anyway."""
    if type(value) is float:
        return value
    if isinstance(value, torch.Tensor):
        return float(value) if value.numel() == 1 else otherwise
    return float(value) if isinstance(value, (int, float)) else otherwise


def on_device(value):
    """The value, if reading it would wait for a device; else None."""
    return value if isinstance(value, torch.Tensor) and not value.is_cpu and is_plain(value) else None


def _nobody():
    """In place of a weak reference: refers to nothing."""


class Scaling:
    def __init__(self):
        self.stays = False  # the scaler must ignore the current update
        self.told = None  # the loss scale, if it is DeepSpeed's
        self._scaler = _nobody  # weak: the scaler of this step
        self._named = 0  # id of its tensor, once named
        self._unscaled = _nobody  # weak: the optimizer whose gradients it has unscaled

    def scales_with(self, attachment, scaler) -> None:
        """Names the tensor that holds the scale, once."""
        scale = getattr(scaler, "_scale", None)
        if scale is None or self._named == id(scale) or not is_plain(scale):
            return
        self._named = id(scale)
        attachment.ops.name_tensor("scale", "loss_scale", scale)

    @staticmethod
    def is_finite(scaler) -> bool:
        """False if this scaler's scale is NaN or infinite, as far as that is known without waiting for a device."""
        scale = getattr(scaler, "_scale", None)
        return on_device(scale) is not None or math.isfinite(number_in(scale, 1.0))

    def unscaled(self, scaler, optimizer) -> None:
        """The scaler has unscaled the gradients of this optimizer's weights."""
        self._scaler, self._unscaled = weakref.ref(scaler), weakref.ref(optimizer)

    def found_overflow(self) -> bool:
        """Whether the gradients that were unscaled last hold NaN or Inf: the scaler will skip that update."""
        scaler = self._scaler()
        optimizer = self._unscaled()
        if scaler is None or optimizer is None:
            return False
        state = scaler._per_optimizer_states.get(id(optimizer), {})
        return any(number_in(found, 0.0) > 0 for found in state.get("found_inf_per_device", {}).values())

    def begins_step(self, scaler) -> None:
        """GradScaler.step is called."""
        self._scaler = weakref.ref(scaler)

    def ends_step(self) -> None:
        """GradScaler.step has returned."""
        self._unscaled = _nobody

    def scale_on_device(self):
        """What the loss was multiplied with, as a tensor, if that is on a device; else None."""
        return on_device(getattr(self._scaler(), "_scale", None)) if self.told is None else None

    def scale(self) -> float:
        """The factor that the loss was multiplied by; 1 if no scaler was seen."""
        return number_in(getattr(self._scaler(), "_scale", None), 1.0) if self.told is None else self.told

    def known_scale(self):
        """The same, but None if no enabled scaler was seen."""
        scaler = self._scaler()
        return self.scale() if scaler is not None and scaler.is_enabled() else None

    def scale_stays(self, scaler) -> bool:
        """Whether this scaler must not lower its scale because of a batch that was skipped and is bad at any scale."""
        if not self.stays or self._scaler() is not scaler:
            return False
        self.stays = False
        scaler._per_optimizer_states.clear()
        return True
