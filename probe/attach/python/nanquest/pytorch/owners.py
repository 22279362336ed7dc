"""What of the program holds some memory: a parameter or buffer of a module, or a variable.

The library asks for memory that it has seen a step spoil and that has no name. The answer takes a look at all Python objects, so it is
for rare occasions.
"""

from __future__ import annotations

import ctypes
import gc
import sys

import torch

from ..base import package
from ..base.probe_state import probe
from .names import living_modules, unwrap

NOBODY, GRADIENT, MODEL, VARIABLE = range(4)  # as the library numbers them
_CONTAINED = 256  # elements of a list or a dict, attributes of an object
_TENSORS = (torch.Tensor, torch.nn.Parameter)


def _lies_in(tensor, address: int) -> bool:
    try:
        return tensor.layout is torch.strided and tensor.untyped_storage().data_ptr() == address
    except (RuntimeError, NotImplementedError):  # a tensor without memory
        return False


def _tensors_in(address: int) -> list:
    return [it for it in gc.get_objects() if type(it) in _TENSORS and _lies_in(it, address)]


def _frames() -> list:
    """Variables of the program's frames, the innermost first, and of their modules."""
    found, seen, frame = [], set(), sys._getframe()
    while frame is not None:
        if not frame.f_code.co_filename.startswith((package.FOLDER, "<")):
            for variables in (frame.f_locals, frame.f_globals):
                if id(variables) not in seen:
                    seen.add(id(variables))
                    found.append(variables)
        frame = frame.f_back
    return found


def _key_in_words(key) -> str:
    """A key of a dict; one that is a parameter by its name."""
    entry = probe.program.numbers.of(key) if probe.program is not None and isinstance(key, torch.Tensor) else None
    return entry[1] if entry else repr(key)[:40] if isinstance(key, (str, int)) else type(key).__name__


def _parts(value):
    """What a variable holds: (how it is written behind the variable's name, value)."""
    if type(value) is dict:
        return [(f"[{_key_in_words(key)}]", part) for key, part in list(value.items())[:_CONTAINED]]
    if type(value) in (list, tuple):
        return [(f"[{i}]", part) for i, part in enumerate(value[:_CONTAINED])]
    if isinstance(getattr(value, "__dict__", None), dict) and not isinstance(value, type(sys)):
        return [(f".{key}", part) for key, part in list(vars(value).items())[:_CONTAINED]]
    return []


def _variable_of(wanted: set, depth: int = 3) -> str:
    """The variable that is one of the objects `wanted` (ids), or holds it; "" if none is found."""
    level = [(name, value) for variables in _frames() for name, value in list(variables.items()) if not name.startswith("__")]
    seen = set()
    for _ in range(depth):
        for name, value in level:
            if id(value) in wanted:
                return name
        inner = []
        for name, value in level:
            if id(value) not in seen and type(value) is not torch.nn.Parameter and type(value) is not torch.Tensor:
                seen.add(id(value))
                inner.extend((name + part, held) for part, held in _parts(value))
        level = inner
    return ""


def _in_modules(address: int) -> str:
    """The path of a parameter or buffer in this memory, from the variable that holds the outermost module; "" if there is none."""
    modules = living_modules()
    parts = {id(part) for module in modules for part in module._modules.values()}
    for root in modules:
        if id(root) in parts:
            continue
        for members in (root.named_parameters(), root.named_buffers()):
            for path, tensor in members:
                if type(tensor) in _TENSORS and _lies_in(tensor, address):
                    return f"{_variable_of({id(root)}) or type(unwrap(root)).__name__}.{path}"
    return ""


def owner_of(address: int) -> tuple:
    """(NOBODY, GRADIENT, MODEL or VARIABLE; its name) of the storage that begins at this address."""
    if path := _in_modules(address):
        return MODEL, path
    tensors = _tensors_in(address)
    if not tensors:
        return NOBODY, ""
    wanted = {id(tensor) for tensor in tensors}
    for it in gc.get_objects():
        if type(it) in _TENSORS and it.is_leaf and it.requires_grad and it.grad is not None and id(it.grad) in wanted:
            return GRADIENT, ""
    return VARIABLE, _variable_of(wanted) or f"of {tuple(tensors[0].shape)} {tensors[0].dtype}"


def _answer(address, size, name, room):
    try:
        kind, text = owner_of(address)
        ctypes.memmove(name, text.encode(errors="replace")[: room - 1] + b"\0", min(len(text.encode(errors="replace")), room - 1) + 1)
        return kind
    except Exception:  # noqa: BLE001 (a training must not end because of the probe)
        return NOBODY


_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t)
_finder = _FUNCTION(_answer)  # lives as long as the library may call it


def answer_for(handle) -> None:
    """The library asks here from now on."""
    handle.nanquest_owners.argtypes = [_FUNCTION]
    handle.nanquest_owners.restype = None
    handle.nanquest_owners(_finder)
