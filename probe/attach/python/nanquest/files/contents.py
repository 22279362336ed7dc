"""The tensors in what a program saves or has loaded: in dictionaries, lists, modules, optimizers and other objects, with their paths."""

from __future__ import annotations

import types

import torch

from ..pytorch.names import is_plain
from ..pytorch.shards import own_part

MOST_OBJECTS = 1_000_000
MOST_DEPTH = 24
_SCALER = {"scale", "growth_factor", "backoff_factor"}  # keys of what GradScaler.state_dict returns
_SCALERS_DEPTH = 4
# Members of these are no data of the program.
_OTHERS = (type, types.ModuleType, types.FunctionType, types.MethodType, types.BuiltinFunctionType, str, bytes, int, float, complex)


class Found:
    """A tensor, and where it is."""

    __slots__ = ("path", "tensor", "group", "is_weight", "is_moment")

    def __init__(self, path: str, tensor, group: str, is_weight: bool, is_moment: bool):
        self.path = path
        self.tensor = tensor  # this process's part of a sharded one
        self.group = group  # the path of the list that holds it, "" if no list does
        self.is_weight = is_weight  # it is an nn.Parameter
        self.is_moment = is_moment  # it belongs to the state of an optimizer

    @property
    def shown(self) -> str:
        return self.path or "the tensor"


def _is_optimizers(value: dict) -> bool:
    """Whether it is what Optimizer.state_dict returns."""
    return dict.__contains__(value, "param_groups") and isinstance(dict.get(value, "state"), dict)


def _parts(value) -> list:
    """[(key, member)] of an object; [] if it has no members to look at."""
    if isinstance(value, dict):
        return [*dict.items(value)]
    if isinstance(value, (list, tuple)):
        return [*enumerate(value)]
    if isinstance(value, _OTHERS) or value is None:
        return []
    own = getattr(value, "__dict__", None)
    if type(own) is not dict:
        return []
    if "_parameters" in own and "_buffers" in own and "_modules" in own:  # a module: its members have no prefix
        inner = [pair for group in ("_parameters", "_buffers", "_modules") for pair in _parts(own[group])]
        return inner + [(key, member) for key, member in own.items() if not key.startswith("_")]
    return [*own.items()]


def tensors_in(value) -> list:
    """Found for every floating-point tensor with plain memory, each object once. Nothing of the program is called."""
    found, seen = [], set()
    waiting = [("", value, "", 0, False)]
    while waiting and len(seen) < MOST_OBJECTS:
        path, it, group, depth, is_moment = waiting.pop()
        if isinstance(it, torch.Tensor):
            part = own_part(it)
            if id(it) in seen or not is_plain(part) or not (part.is_floating_point() or part.is_complex()) or not part.numel():
                continue
            seen.add(id(it))
            found.append(Found(path, part, group, isinstance(it, torch.nn.Parameter), is_moment))
            continue
        if depth >= MOST_DEPTH or isinstance(it, _OTHERS) or it is None or id(it) in seen:
            continue
        seen.add(id(it))
        of_optimizer = isinstance(it, torch.optim.Optimizer) or (isinstance(it, dict) and _is_optimizers(it))
        here = path if isinstance(it, (list, tuple)) else ""
        for key, member in reversed(_parts(it)):
            inside = is_moment or (of_optimizer and key == "state")
            waiting.append((f"{path}.{key}" if path else str(key), member, here, depth + 1, inside))
    return found


def scales_in(value, depth: int = 0) -> list:
    """The loss scales of loss scalers' states in what a program has read."""
    if depth > _SCALERS_DEPTH or not isinstance(value, dict):
        return []
    if _SCALER <= value.keys():
        return [float(value["scale"])]
    return [scale for member in value.values() for scale in scales_in(member, depth + 1)]
