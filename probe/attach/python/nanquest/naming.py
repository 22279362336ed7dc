"""Names for what a training program holds: modules, parameters, buffers, inputs."""

from __future__ import annotations

import inspect
import weakref

import torch

# What wraps a model without being part of it, and under which name it keeps the model.
_WRAPPERS = {"DistributedDataParallel": "module", "DataParallel": "module", "OptimizedModule": "_orig_mod"}


def unwrap(module: torch.nn.Module) -> torch.nn.Module:
    """The model inside DistributedDataParallel, torch.compile and the like."""
    while (inner := _WRAPPERS.get(type(module).__name__)) and isinstance(getattr(module, inner, None), torch.nn.Module):
        module = getattr(module, inner)
    return module


def is_plain(tensor) -> bool:
    """Whether the library may look at it: memory of its own, no subclass with ideas of its own."""
    return (type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.layout is torch.strided
            and tensor.device.type != "meta" and not tensor.is_quantized
            and not torch._C._functorch.is_functorch_wrapped_tensor(tensor))


class ModulePaths:
    """The path of every module, from the root it was first seen under."""

    def __init__(self):
        self._known = {}     # id -> (weak reference, path, type), the last two as bytes
        self._roots = []     # weak references to models, in the order they were seen

    def of(self, module):
        """(path, type) as bytes, or None if the module belongs to no root seen so far."""
        entry = self._known.get(id(module))
        return entry[1:] if entry is not None and entry[0]() is module else None

    def add_root(self, root) -> str:
        """Learns the paths below `root`; returns the prefix of its names ("" for the first model)."""
        if any(seen() is root for seen in self._roots):
            return self.prefix(root)
        self._roots = [seen for seen in self._roots if seen() is not None]
        self._roots.append(weakref.ref(root))
        prefix = self.prefix(root)
        for name, module in root.named_modules():
            path = (prefix + name).rstrip(".") or type(root).__name__
            self._known[id(module)] = (weakref.ref(module), path.encode(), type(module).__name__.encode())
        return prefix

    def is_root(self, module) -> bool:
        return any(seen() is module for seen in self._roots)

    def prefix(self, root) -> str:
        """Names of a second model begin with its class, so that two models' names differ."""
        if not self._roots or self._roots[0]() is root:
            return ""
        twins = [seen() for seen in self._roots[1:] if type(seen()) is type(root)]
        number = next((i for i, twin in enumerate(twins) if twin is root), 0)
        return type(root).__name__ + (str(number + 1) if number else "") + "."


class ArgumentNames:
    """Names for the tensors that a model is called with, by its forward's signature."""

    def __init__(self):
        self._signatures = {}

    def of(self, module, args, kwargs):
        """(name, tensor) of every plain tensor that nothing computed: what the data loader gave."""
        names = self._signatures.get(type(module))
        if names is None:
            try:
                names = [p.name for p in inspect.signature(type(module).forward).parameters.values()
                         if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)][1:]
            except (TypeError, ValueError, AttributeError):  # scripted modules have no Python function
                names = []
            self._signatures[type(module)] = names
        for i, value in enumerate(args):
            yield from _tensors_in(names[i] if i < len(names) else f"arg{i}", value)
        for name, value in kwargs.items():
            yield from _tensors_in(name, value)


def _tensors_in(name, value, depth=0):
    if isinstance(value, torch.Tensor):
        if value.grad_fn is None and not value.requires_grad and is_plain(value):
            yield name, value
    elif depth < 3 and isinstance(value, dict):
        for key, inner in value.items():
            yield from _tensors_in(f"{name}.{str(key).replace(chr(47), chr(95))}", inner, depth + 1)
    elif depth < 3 and isinstance(value, (tuple, list)):
        for i, inner in enumerate(value):
            yield from _tensors_in(f"{name}.{i}", inner, depth + 1)
