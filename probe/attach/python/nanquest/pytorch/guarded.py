"""The rule that no hook makes the program fail, and what hooks ask of PyTorch before they do anything."""

from __future__ import annotations

import functools
from threading import get_ident

from torch.compiler import is_compiling

from ..base.probe_state import probe
from . import private


def guarded(hook):
    """Calls the hook, or does nothing; lets no exception out except an intended SystemExit. Only on the thread that trains."""

    @functools.wraps(hook)
    def call(*args):
        if is_compiling():
            return None
        attached = probe.attachment
        if attached is None or attached.off:
            return None
        if attached.thread is not None and attached.thread != get_ident():
            return None
        try:
            return hook(attached, *args)
        except Exception as error:  # noqa: BLE001 (a training must not end because of the probe)
            failed(attached, hook, error)
            return None

    return call


def failed(attached, hook, error) -> None:
    line = " ".join(str(error).split())
    attached.give_up(f"the probe is off: {hook.__name__}: {type(error).__name__}: {line[:300]}")


def elsewhere() -> bool:
    """Whether tensors here may not be what they seem: a transform or a dispatch mode is active, or a trace is made."""
    return private.dispatch_modes() > 0 or private.transforms() is not None or private.tracing_state() is not None


def in_backward() -> bool:
    return private.graph_task() != -1
