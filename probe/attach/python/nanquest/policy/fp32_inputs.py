"""Inputs of modules whose weights the fp32 fallback has made fp32: they are converted to fp32 as long as the modules live, even when the
probe is off."""

from __future__ import annotations

import weakref

import torch

from ..base.probe_state import probe

LOW = (torch.float16, torch.bfloat16)


def wide(value, depth=0):
    """fp16 and bf16 tensors in it as fp32; anything else as it is."""
    if isinstance(value, torch.Tensor):
        return value.float() if value.dtype in LOW else value
    if depth < 3 and type(value) in (list, tuple):
        return type(value)(wide(each, depth + 1) for each in value)
    if depth < 3 and type(value) is dict:
        return {key: wide(each, depth + 1) for key, each in value.items()}
    return value


def inputs(module, args, kwargs):
    """The inputs of a call: those as narrow as the module's weights once were become fp32."""
    if probe.wide_modules is None or module not in probe.wide_modules:
        return args, kwargs
    return tuple(map(wide, args)), {key: wide(value) for key, value in kwargs.items()}


def _is_narrow(module) -> bool:
    return any(tensor is not None and tensor.dtype in LOW for tensor in (*module._parameters.values(), *module._buffers.values()))


class Widening:
    """The formats of these models, read before their weights become fp32."""

    def __init__(self, models):
        before = probe.wide_modules or ()
        self._all, self._narrow = weakref.WeakSet(), weakref.WeakSet()
        for root in models:
            parts = [*root.modules()]
            narrow = {part for part in parts if _is_narrow(part)}
            found = {part for part in parts if (part is root or part._parameters) and part not in before}
            self._all.update(found)
            self._narrow.update(part for part in found if part in narrow or (part is root and narrow))

    def put(self) -> None:
        """Starts the conversion."""
        probe.wide_modules = weakref.WeakSet([*(probe.wide_modules or ()), *self._all])

    def keep_what_was_narrow(self) -> None:
        """Ends the conversion for modules whose weights were fp32 before."""
        self._leave([module for module in self._all if module not in self._narrow])

    def undo(self) -> None:
        """Ends it for all: the weights have their old formats again."""
        self._leave([*self._all])

    @staticmethod
    def _leave(gone) -> None:
        left = weakref.WeakSet(probe.wide_modules or ())
        left.difference_update(gone)
        probe.wide_modules = left or None
