"""The fp32 fallback: once, a program in low precision goes on in fp32, with a smaller learning rate."""

from __future__ import annotations

import weakref

import torch
from torch.optim.swa_utils import AveragedModel

from . import compiled
from .formats import LOW, Formats, wide
from .naming import is_plain, living_modules, unwrap
from .places import place_in_group

taken = None    # the Fallback in force, or None

_LIBRARIES = {"deepspeed": "DeepSpeed keeps weights and moments in memory of its own",
              **dict.fromkeys(("bitsandbytes", "torchao", "gptqmodel", "auto_gptq", "awq", "hqq"),
                              "some of its weights have 4 or 8 bits")}


def can_skip(optimizer) -> bool:
    """Whether `step` leaves parameters without a gradient, and their state, alone: so do PyTorch's own."""
    return type(optimizer).step.__module__.startswith("torch.optim")


def _kinds(value) -> set:
    return {kind.__name__ for kind in type(value).__mro__}


def _why_not_module(module) -> str:
    if {"FullyShardedDataParallel", "FSDPModule"} & _kinds(module):
        return "FSDP keeps weights and moments in shards"
    return _LIBRARIES.get(type(module).__module__.partition(".")[0], "")


def _why_not_weight(weight) -> str:
    if "DTensor" in _kinds(weight):
        return "FSDP keeps weights and moments in shards"
    if weight.element_size() == 1 or weight.is_quantized:
        return "some of its weights have 4 or 8 bits"
    return "" if is_plain(weight) else f"some of its weights are of type {type(weight).__name__}"


def _tensors_in(value, depth=0):
    """Those that an optimizer keeps: in dictionaries, and LBFGS in lists."""
    if isinstance(value, torch.Tensor):
        yield value
    elif depth < 3 and isinstance(value, (dict, list, tuple)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _tensors_in(each, depth + 1)


def _shapes(model) -> list:
    return [(name, weight.shape) for name, weight in model.named_parameters()]


def _copies_of(models) -> list:
    """What a program keeps beside these and mixes with them: running averages of their weights, a slower teacher."""
    kinds, shapes = {type(model) for model in models}, [_shapes(model) for model in models]
    return [it for it in living_modules() if isinstance(it, AveragedModel) or (
        type(it) in kinds and all(it is not model for model in models) and _shapes(it) in shapes)]


class Fallback:
    def __init__(self, program, optimizers, factor: float):
        self._attached = program.attached
        self._program = program
        self._optimizers = [optimizer for optimizer in optimizers if optimizer is not None]
        self._models = [root for root in program.paths.roots() if program.trains(root)]
        self._copies = _copies_of(self._models)
        self._modules = weakref.WeakSet()   # those whose inputs are made as wide as their weights
        self._formats = Formats(factor)
        self._on_trial = False
        self.factor = factor

    def why_not(self) -> str:
        """What keeps this program from it, "" if nothing does. Alike on all ranks of a data-parallel program."""
        for module in (module for root in self._models for module in root.modules()):
            if why := _why_not_module(module):
                return why
        for weight in self._weights():
            if why := _why_not_weight(weight):
                return why
        for optimizer in self._optimizers:
            if why := _LIBRARIES.get(type(optimizer).__module__.partition(".")[0], ""):
                return why
            if not can_skip(optimizer):
                return f"{type(optimizer).__name__}.step is not PyTorch's own"
        if compiled.ran:
            return "regions of torch.compile keep the formats that they were compiled for"
        low = [tensor for tensor in self._tensors() if tensor.dtype in LOW]
        if place_in_group()[1] > 1:
            if not self._program.parallel:
                return "several processes train together, but not by DistributedDataParallel, so they could part ways"
            if low:
                return "DistributedDataParallel keeps buckets in the format of the weights"
            return ""
        return self._attached.ops.widen(low, True)

    def take(self) -> str:
        """"" if it is in force, else why it can't be: then nothing was changed."""
        global taken
        if why := self.why_not():
            return why
        if why := self._attached.ops.widen([tensor for tensor in self._tensors() if tensor.dtype in LOW], False):
            return why
        for root in (*self._models, *self._copies):
            self._modules.update(module for module in root.modules() if module is root or module._parameters)
        self._formats.put()
        self._program.moved()
        self._on_trial = True
        taken = self
        return ""

    def end(self) -> None:
        """The formats of the weights stay; autocast, scalers and rates are the program's again."""
        global taken
        self._formats.undo()
        taken = None

    def _weights(self) -> list:
        found = {id(p): p for root in self._models for p in root.parameters()}
        found.update((id(p), p) for optimizer in self._optimizers for group in optimizer.param_groups for p in group["params"])
        return list(found.values())

    def _tensors(self) -> list:
        """Weights, buffers and moments."""
        roots = (*self._models, *self._copies)
        buffers = [tensor for root in roots for tensor in (*root.parameters(), *root.buffers())]
        states = [tensor for optimizer in self._optimizers for tensor in _tensors_in(optimizer.state)]
        found = {id(tensor): tensor for tensor in [*self._weights(), *buffers, *states]}
        return list(found.values())

    # At each call of a module.

    def inputs(self, module, args, kwargs):
        """What a program made as narrow as its weights were."""
        if module not in self._modules or (self._on_trial and module in self._models):  # its own are kept as they are
            return args, kwargs
        return tuple(map(wide, args)), {key: wide(value) for key, value in kwargs.items()}

    def call(self, own, module, args, kwargs):
        """A model called from outside. The first call shows whether the program can do with fp32 at all: a kernel that has
        none, or a cast in the middle of a model, raises. Then everything is as if there had been no fallback."""
        if not self._on_trial or unwrap(module) not in self._models:
            return own(module, *args, **kwargs)
        self._on_trial = False
        try:
            wide_args, wide_kwargs = self.inputs(module, args, kwargs)
            result = own(module, *wide_args, **wide_kwargs)
        except Exception as error:  # noqa: BLE001: if it is not of our making, it comes again below
            self._take_back(error)
            return own(module, *args, **kwargs)
        self._attached.ops.keep_wide(True)
        self._models = self._copies = self._optimizers = ()  # nobody else is to keep them alive
        return result

    def _take_back(self, error) -> None:
        policy = self._program.policy
        policy.undo.put_back(self._attached)
        self._attached.ops.keep_wide(False)
        self.end()
        self._program.moved()
        policy.undo.begins(self._attached)
        policy.fallback_failed(f"in fp32 the model raises {type(error).__name__}: {' '.join(str(error).split())[:200]}")
