"""Operators that programs define in Python (torch.library.custom_op) are dispatched where observers hear of them.

PyTorch has a shortcut for them, from one Python function to the next, on which nobody is told: what such an operator gives would be
memory that comes from nowhere. It has a switch for that shortcut as well, an operator each.
"""

from __future__ import annotations

import sys
import weakref

import torch

_shortcuts = weakref.WeakSet()   # overloads that had it, or would have


def _enabling(own):
    def enable(self, enabled=True):
        if enabled:
            _shortcuts.add(self)
        return own(self, False)
    return enable


class _Shortcuts:
    def remove(self) -> None:
        """After the patch is undone."""
        for overload in list(_shortcuts):
            overload._enable_pyobj_dispatch(True)
        _shortcuts.clear()


def install(patches) -> _Shortcuts:
    kind = torch._ops.OpOverload
    if hasattr(kind, "_enable_pyobj_dispatch"):
        patches.put(kind, "_enable_pyobj_dispatch", _enabling)
        known = sys.modules.get("torch._library.custom_ops")
        for definition in list(getattr(known, "OPDEFS", {}).values()):
            if getattr(definition._opoverload, "_pyobj_dispatcher", None) is not None:
                definition._opoverload._enable_pyobj_dispatch(True)
    return _Shortcuts()
