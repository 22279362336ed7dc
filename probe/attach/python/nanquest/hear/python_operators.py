"""Operators that programs define in Python (torch.library.custom_op) are dispatched where observers hear of them.

PyTorch has a shortcut for them, from one Python function to the next, on which nobody is told: what such an operator gives would be
memory that comes from nowhere. It has a switch for that shortcut as well, an operator each. PyTorch's own such operators keep it: of
these what they call is on record.
"""

from __future__ import annotations

import weakref

from ..pytorch import private

_shortcuts = weakref.WeakSet()  # overloads that had it, or would have


def _definitions():
    return private.python_definitions.find() or {}


def _is_programs(overload) -> bool:
    definition = _definitions().get(overload._schema.name)
    function = getattr(definition, "_init_fn", None)
    return function is not None and (getattr(function, "__module__", None) or "").partition(".")[0] != "torch"


def _enabling(own):
    def enable(self, enabled=True):
        if not enabled or not _is_programs(self):
            return own(self, enabled)
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
    if private.python_shortcut.find() is not None:
        patches.put(private.OpOverload, private.python_shortcut.last, _enabling)
        for definition in list(_definitions().values()):
            overload = getattr(definition, "_opoverload", None)
            if getattr(overload, "_pyobj_dispatcher", None) is not None:
                overload._enable_pyobj_dispatch(True)
    return _Shortcuts()
