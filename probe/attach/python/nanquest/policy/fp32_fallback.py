"""The fp32 fallback: once, a low-precision program goes on in fp32, with a smaller learning rate."""

from __future__ import annotations

import torch
from torch.optim.swa_utils import AveragedModel

from ..base.probe_state import probe
from ..base.rank import place_in_group
from ..pytorch import private
from ..pytorch.names import living_modules, unwrap
from . import fp32_obstacles
from .fp32_formats import Formats
from .fp32_inputs import LOW, Widening


def before_update(optimizer, args, kwargs) -> None:
    """A hook of every optimizer. It also works when the probe is off."""
    if probe.fallback is not None:
        probe.fallback.rates.before(optimizer)


def after_update(optimizer, args, kwargs) -> None:
    """Like before_update."""
    if probe.fallback is not None:
        probe.fallback.rates.after(optimizer)


def _shapes(model) -> list:
    return [(name, weight.shape) for name, weight in model.named_parameters()]


def _copies_of(models) -> list:
    """Models that the program averages with these: running averages of their weights, a slower teacher."""
    kinds, shapes = {type(model) for model in models}, [_shapes(model) for model in models]
    return [
        it
        for it in living_modules()
        if isinstance(it, AveragedModel) or (type(it) in kinds and all(it is not model for model in models) and _shapes(it) in shapes)
    ]


class Fallback:
    """From `take` on, the fallback controls the program's weights, autocast, scalers and learning rates. It is on trial until a call of
    a model in fp32 has worked."""

    def __init__(self, program, optimizers, factor: float):
        self._attached = program.attached
        self._program = program
        self._optimizers = optimizers
        self._models = [root for root in program.paths.roots() if program.trains(root)]
        self._copies = _copies_of(self._models)
        if place_in_group()[1] > 1:  # 16-bit copies stay: what one rank holds must not decide for all ranks
            self._copies = [
                copy for copy in self._copies if not any(tensor.dtype in LOW for tensor in (*copy.parameters(), *copy.buffers()))
            ]
        self._inputs = None  # Widening, once it is taken
        self._formats = Formats(factor)
        self._on_trial = False
        self.rates = self._formats.rates

    def why_not(self) -> str:
        """The reason why this program can't fall back, "" if it can. The same on all ranks of a data-parallel program."""
        return self._what_it_is() or self._attached.ops.widen(self._tensors(), True)

    def _what_it_is(self) -> str:
        """The same without the check of free memory, which is repeated when the memory is needed."""
        for module in (module for root in self._models for module in root.modules()):
            if why := fp32_obstacles.of_module(module):
                return why
        for kind in self._program.called_as:
            if why := fp32_obstacles.of_kind(kind):
                return why
        for weight in self._weights():
            if why := fp32_obstacles.of_weight(weight):
                return why
        for optimizer in self._optimizers:
            if why := fp32_obstacles.of_optimizer(optimizer):
                return why
        if private.autocast_devices is None:
            return "this PyTorch does not say for which devices autocast may be on"
        if probe.regions_ran:
            return "regions of torch.compile keep the formats that they were compiled for"
        if place_in_group()[1] > 1:
            if not self._program.parallel:
                return "several processes train together without DistributedDataParallel, so that their weights could become different"
            if any(tensor.dtype in LOW for tensor in self._tensors()):
                return "DistributedDataParallel keeps buckets in the format of the weights"
        return ""

    def take(self) -> str:
        """Starts the fallback. Returns "" on success, else why not: then nothing was changed."""
        if why := self._what_it_is():
            return why
        inputs = Widening((*self._models, *self._copies))
        try:
            self._formats.put()
            if why := self._attached.ops.widen(self._tensors(), False):
                self._formats.undo()
                return why
            self._program.moved()
        except BaseException:
            self._attached.ops.keep_wide(False)
            self._formats.undo()
            raise
        inputs.put()
        self._inputs = inputs
        self._on_trial = True
        probe.fallback = self
        return ""

    def end(self, taken_back: bool = False) -> None:
        """Returns autocast, scalers and learning rates to the program. The formats of the weights stay, and so does the conversion of
        inputs, unless the weights were `taken_back`."""
        probe.fallback = None
        self._formats.undo()
        if taken_back:
            self._inputs.undo()
        else:
            self._inputs.keep_what_was_narrow()

    def _weights(self) -> list:
        found = {id(p): p for root in self._models for p in root.parameters()}
        found.update((id(p), p) for optimizer in self._optimizers for group in optimizer.param_groups for p in group["params"])
        return list(found.values())

    def _tensors(self) -> list:
        """Weights, buffers and moments."""
        roots = (*self._models, *self._copies)
        buffers = [tensor for root in roots for tensor in (*root.parameters(), *root.buffers())]
        states = [tensor for optimizer in self._optimizers for tensor in fp32_obstacles.tensors_in(optimizer.state)]
        found = {id(tensor): tensor for tensor in [*self._weights(), *buffers, *states]}
        return list(found.values())

    # The trial.

    def call(self, own, module, given, wide):
        """A model is called from outside: `given` are the program's arguments, `wide` the converted ones (fp32_inputs.inputs). The first
        call shows whether the program works in fp32: a kernel without fp32, or a cast inside the model, raises an error. Then the
        fallback is taken back completely. A call without gradients can show that fp32 fails, but not that it works."""
        if not self._on_trial or unwrap(module) not in self._models:
            return own(module, *wide[0], **wide[1])
        trains, undo = torch.is_grad_enabled(), self._program.policy.undo
        if aside := not trains and not self._attached.ops.remembers():
            self._safely(undo.begins)
        failed = ""
        try:
            result = own(module, *wide[0], **wide[1])
        except Exception as error:  # noqa: BLE001 (an error of the program's own is raised again below)
            if place_in_group()[1] > 1 and isinstance(error, torch.OutOfMemoryError):
                raise  # on this rank only: in a second call the other ranks would wait for a broadcast
            failed = f"in fp32 the model raises {type(error).__name__}: {' '.join(str(error).split())[:200]}"
        # From here on the error is freed, and with it everything that the call had allocated.
        if failed:
            wide.clear()
            self._safely(self._take_back, failed, trains)
            return own(module, *given[0], **given[1])
        if trains:
            self._safely(self._settle)
        elif aside:
            self._safely(undo.forget)
        return result

    def _safely(self, work, *args) -> None:
        """An error of the probe in the middle of the program's call must not look like an error of the program."""
        try:
            work(*args)
        except Exception as error:  # noqa: BLE001 (a training must not end because of the probe)
            self._attached.give_up(f"the probe is off: the fallback: {type(error).__name__}: {' '.join(str(error).split())[:300]}")

    def update_made(self) -> None:
        """If no model is called as a whole, an update of a later step ends the trial."""
        if self._on_trial and self._attached.ops.step() != self._attached.fell_back:
            self._settle()

    def _settle(self) -> None:
        self._on_trial = False
        self._attached.ops.keep_wide(True)
        self._models = self._copies = self._optimizers = ()  # this object must not keep them alive

    def _take_back(self, why: str, trains: bool) -> None:
        self._on_trial = False
        policy = self._program.policy
        policy.undo.put_back()
        self._attached.ops.keep_wide(False)
        self.end(taken_back=True)
        self._program.moved()
        if trains:
            policy.undo.begins()
        policy.fallback_failed(why)
