"""Graphs that torch.compile made for the Inductor: each call is told to the library as one region.

Nobody sees what runs inside: kernels write memory that no operator made. Other backends call operators, which are seen.
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import sys

import torch

MODULE, CLASS = "torch._inductor.output_code", "CompiledFxGraph"

_attachment = None   # who listens
ran = False          # whether a region has run
_finder = None


def _tensors(values):
    return [value for value in values if isinstance(value, torch.Tensor)]


def _tell(attachment, operator, *arguments) -> None:
    try:
        operator(*arguments)
    except Exception as error:  # noqa: BLE001: a training must not end because of the probe
        attachment.give_up(f"the probe is off: a compiled graph: {type(error).__name__}: {str(error)[:300]}")


def _watch(graph_class) -> None:
    """Wraps the class's call, once."""
    run = graph_class.__call__
    if getattr(run, "_nanquest", False):
        return

    @functools.wraps(run)
    def call(self, inputs):
        global ran
        attachment = _attachment
        if attachment is None or attachment.off or not attachment.started or torch._C._len_torch_dispatch_stack() > 0:
            return run(self, inputs)
        ran = True
        _tell(attachment, attachment.ops.begin_region, _tensors(inputs))
        try:
            outputs = run(self, inputs)
        except BaseException:
            _tell(attachment, attachment.ops.leave_region)
            raise
        _tell(attachment, attachment.ops.end_region,
              _tensors(outputs if isinstance(outputs, (tuple, list)) else (outputs,)))
        return outputs

    call._nanquest = True
    graph_class.__call__ = call


class _Finder(importlib.abc.MetaPathFinder):
    """Waits for the module to be imported: that of a program which compiles nothing is never loaded."""

    def find_spec(self, name, path=None, target=None):
        if name != MODULE:
            return None
        _stop_waiting()
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or not hasattr(spec.loader, "exec_module"):
            return None
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            if hasattr(module, CLASS):
                _watch(getattr(module, CLASS))

        spec.loader.exec_module = exec_module
        return spec


def _stop_waiting() -> None:
    global _finder
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
    _finder = None


def install(attachment) -> None:
    """Wraps the class now, or when it is made."""
    global _attachment, _finder
    _attachment = attachment
    module = sys.modules.get(MODULE)
    if hasattr(module, CLASS):
        _watch(getattr(module, CLASS))
    elif _finder is None:
        _finder = _Finder()
        sys.meta_path.insert(0, _finder)


def remove() -> None:
    global _attachment
    _attachment = None
    _stop_waiting()
