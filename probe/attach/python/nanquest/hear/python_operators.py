"""Makes observers see operators that programs define in Python (torch.library.custom_op).

PyTorch has a shortcut for them that calls their Python function directly, without observers: the results of such an operator would have
no origin in the record. Each operator has a switch for this shortcut. PyTorch's own Python operators keep the shortcut, because the
operators that they call are recorded.
"""

from __future__ import annotations

import weakref

from ..pytorch import private

_shortcuts = weakref.WeakSet()  # overloads that have the shortcut, or would have it without this patch


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
        """To be called after the patch is undone."""
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
