"""What programs do to gradients before the update: clipping, unscaling by a loss scaler."""

from __future__ import annotations

import torch
from torch.nn.utils import clip_grad

from ..base.probe_state import probe
from ..pytorch.guarded import guarded
from ..pytorch.names import is_plain
from ..steps.loss_scaler import on_device
from ..steps.program import known_program

OPTIMIZER = 3  # number of the phase in the library


class _Phase:
    """Operations inside this context belong to the optimizer. Does nothing before the probe has begun, or on another thread."""

    def __enter__(self):
        self.before = _enter(OPTIMIZER)
        return self

    def __exit__(self, *_):
        if self.before is not None:
            _enter(self.before)


@guarded
def _enter(attached, phase):
    return attached.handle.nanquest_phase(phase) if attached.started else None


@guarded
def _clipped(attached, parameters, norm):
    """If the loss scaler found an overflow, an infinite norm is expected: the scaler handles it. Where a device has both, the gate reads
    them together, and nobody waits here."""
    if not attached.started or (isinstance(norm, torch.Tensor) and not is_plain(norm)):
        return
    program = known_program()
    if on_device(norm) is None and program.scaling.found_overflow():
        return
    norm = norm if isinstance(norm, torch.Tensor) else torch.tensor(float(norm))
    attached.heed(attached.ops.clipped(norm, *program.written.numbered(parameters)))


def _around_clip(own):
    def clip_grad_norm_(parameters, *args, **kwargs):
        if torch.compiler.is_compiling() or probe.attachment is None:
            return own(parameters, *args, **kwargs)
        if not isinstance(parameters, (torch.Tensor, list, tuple)):
            parameters = list(parameters)  # a generator can be read only once
        with _Phase():
            try:
                norm = own(parameters, *args, **kwargs)
            except RuntimeError as error:
                if "non-finite" in str(error):  # error_if_nonfinite=True
                    _clipped(parameters, float("nan"))
                raise
            _clipped(parameters, norm)
        return norm

    return clip_grad_norm_


def _around(own):
    def call(*args, **kwargs):
        if torch.compiler.is_compiling():
            return own(*args, **kwargs)
        with _Phase():
            return own(*args, **kwargs)

    return call


@guarded
def _note_scaled(attached, scaler, scaled, loss):
    if not attached.started:
        return
    scaling = known_program().scaling
    scaling.scales_with(attached, scaler)
    if not scaling.is_finite(scaler):
        return  # the loss that backward starts from is bad because of it, also where no gradient shows it
    pairs = [(scaled, loss)] if isinstance(loss, torch.Tensor) else zip(scaled, loss)
    for after, before in pairs:
        if after is not before and is_plain(before) and is_plain(after):
            attached.ops.note_scaled(after, before)


def _around_scale(own):
    def scale(self, outputs):
        scaled = own(self, outputs)
        _note_scaled(self, scaled, outputs)
        return scaled

    return scale


@guarded
def _unscaled(attached, scaler, optimizer):
    if attached.started and scaler.is_enabled():
        known_program().scaling.unscaled(scaler, optimizer)


def _around_unscale(own):
    def unscale_(self, optimizer):
        with _Phase():
            result = own(self, optimizer)
        _unscaled(self, optimizer)
        return result

    return unscale_


@guarded
def _before_scaled_step(attached, scaler, optimizer):
    if scaler.is_enabled() and (attached.started or attached.start()):
        if attached.loads is not None:
            attached.loads.scaled_step(scaler, optimizer)
        return known_program().updates.scaled_step(scaler)
    return None


@guarded
def _after_scaled_step(attached, scaler, optimizer, updates):
    program = known_program()
    if attached.learning is not None:
        attached.learning.scaled_step(scaler, made=program.updates.made != updates)
    program.updates.scaler_skipped(attached, optimizer, updates)


def _around_step(own):
    def step(self, optimizer, *args, **kwargs):
        updates = _before_scaled_step(self, optimizer)
        if updates is None:
            return own(self, optimizer, *args, **kwargs)
        with _Phase():
            result = own(self, optimizer, *args, **kwargs)
        _after_scaled_step(self, optimizer, updates)
        return result

    return step


@guarded
def _scale_stays(attached, scaler):
    return attached.started and known_program().scaling.scale_stays(scaler)


def _around_update(own):
    def update(self, *args, **kwargs):
        if not args and not kwargs and _scale_stays(self):
            return None
        with _Phase():
            return own(self, *args, **kwargs)

    return update


def install(patches) -> None:
    for module in (torch.nn.utils, clip_grad):
        patches.put(module, "clip_grad_norm_", _around_clip)
        patches.put(module, "clip_grad_value_", _around)
    scaler = torch.amp.GradScaler
    patches.put(scaler, "scale", _around_scale)
    patches.put(scaler, "unscale_", _around_unscale)
    patches.put(scaler, "step", _around_step)
    patches.put(scaler, "update", _around_update)
