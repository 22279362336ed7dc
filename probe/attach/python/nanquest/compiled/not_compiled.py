"""Excludes the probe's own functions from torch.compile. When it gives a frame of the program up, as it does at every `backward`, it also
tries to compile what that frame calls: compiled hooks stop firing."""

from __future__ import annotations

import sys
import types

from ..base import package
from ..pytorch import private

_done = set()  # code objects that are excluded already


def _codes_of(code):
    """Functions that are defined inside this one."""
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _codes_of(constant)


def _functions(module):
    for value in list(vars(module).values()):
        members = list(vars(value).values()) if isinstance(value, type) and value.__module__ == module.__name__ else [value]
        for member in members:
            member = getattr(member, "__func__", member)
            if isinstance(member, types.FunctionType) and member.__module__ == module.__name__:
                yield getattr(member, "__wrapped__", member)


def leave(calls_own) -> None:
    """Excludes the package's functions that are imported by now from torch.compile. Everything they call is excluded with them:
    PyTorch's operators, other functions of the probe. Functions defined inside functions are not excluded: they replace PyTorch's own
    functions and call those. `calls_own`: such inner functions that call only the probe's."""
    strategy, action = private.frame_strategy, private.frame_action
    if strategy is None or action is None or private.set_code_strategy is None:
        return  # it would compile these frames too
    alone, with_callees = strategy(action.SKIP, action.DEFAULT), strategy(action.SKIP, action.SKIP)

    def tell(code, how):
        if code not in _done:
            _done.add(code)
            private.set_code_strategy(code, how)

    for function in calls_own:
        tell(function.__code__, with_callees)
    for name, module in list(sys.modules.items()):
        if module is None or not (name == package.NAME or name.startswith(package.NAME + ".")):
            continue
        for function in _functions(module):
            tell(function.__code__, with_callees)
            for code in _codes_of(function.__code__):
                tell(code, alone)
