"""Graphs that torch.compile made for the Inductor: each call is told to the library as one region.

Nobody sees what runs inside: kernels write memory that no operator made. So the graph that the compiler was given is told as
well, once (region_graph.py): a file of a bad step carries it, and replay runs its operators one by one. Other backends call
operators, which are seen.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.abc
import importlib.machinery
import itertools
import os
import sys

import torch
from torch.utils._python_dispatch import _disable_current_modes

from . import region_graph

NO_GRAPH = -1        # of a region whose graph nobody saw: it was compiled before the probe came

_attachment = None   # who listens
ran = False          # whether a region has run
_finder = None
_numbers = itertools.count()


def _tensors(values):
    return [value for value in values if isinstance(value, torch.Tensor)]


def _real(tensors) -> bool:
    """Whether there is something to compute: while it compiles, PyTorch calls with tensors that have shapes alone."""
    return all(type(tensor) in (torch.Tensor, torch.nn.Parameter) for tensor in tensors)


def _tell(attachment, operator, *arguments) -> None:
    try:
        if torch._C._len_torch_dispatch_stack() > 0:  # the first call of what was compiled runs under a mode of PyTorch's own
            with _disable_current_modes():
                operator(*arguments)
        else:
            operator(*arguments)
    except Exception as error:  # noqa: BLE001: a training must not end because of the probe
        attachment.give_up(f"the probe is off: a compiled graph: {type(error).__name__}: {str(error)[:300]}")


def _watch_calls(module) -> None:
    """Wraps the call of what was compiled, once."""
    graph_class = getattr(module, "CompiledFxGraph", None)
    run = getattr(graph_class, "__call__", None)
    if graph_class is None or getattr(run, "_nanquest", False):
        return

    @functools.wraps(run)
    def call(self, inputs):
        global ran
        attachment = _attachment
        if attachment is None or attachment.off or not attachment.started or not _real(tensors := _tensors(inputs)):
            return run(self, inputs)
        ran = True
        _tell(attachment, attachment.ops.begin_region, tensors, getattr(self, "_nanquest_graph", NO_GRAPH),
              [value for value in inputs if isinstance(value, int)])
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


def _watch_compiler(module) -> None:
    """Wraps the function that is given every graph, forward or backward, once."""
    own = getattr(module, "_compile_fx_inner", None)
    if own is None or getattr(own, "_nanquest", False):
        return
    # Where the cache of autograd's graphs has what was compiled, nobody is given a graph. The compiled code is cached apart.
    if "TORCHINDUCTOR_AUTOGRAD_CACHE" not in os.environ and hasattr(torch, "_functorch"):
        settings = getattr(torch._functorch, "config", None)
        if hasattr(settings, "enable_autograd_cache"):
            settings.enable_autograd_cache = False

    @functools.wraps(own)
    def compile_inner(graph_module, *args, **kwargs):
        attachment = _attachment
        told = None
        if attachment is not None and not attachment.off:
            told = region_graph.told(graph_module)  # before lowering changes it
        result = own(graph_module, *args, **kwargs)
        if told is not None:
            _number(attachment, result, told)
        return result

    compile_inner._nanquest = True
    module._compile_fx_inner = compile_inner


def _number(attachment, compiled, told) -> None:
    number = next(_numbers)
    try:
        compiled._nanquest_graph = number
    except Exception:  # noqa: BLE001: a result of another kind, whose calls nobody sees
        return
    _tell(attachment, attachment.ops.region_graph, number, told)


def _watch_compiling(module) -> None:
    """Wraps what PyTorch does around each compilation, of a frame or of its backward, once: what runs meanwhile is no op of the
    program's."""
    handler = getattr(module, "CompilationCallbackHandler", None)
    own = getattr(handler, "install_callbacks", None)
    if own is None or getattr(own, "_nanquest", False):
        return

    @contextlib.contextmanager
    def install_callbacks(self, *args, **kwargs):
        attachment = _attachment
        away = attachment is not None and not attachment.off and attachment.started
        if away:
            _tell(attachment, attachment.ops.compiling, True)
        try:
            with own(self, *args, **kwargs):
                yield
        finally:
            if away:
                _tell(attachment, attachment.ops.compiling, False)

    install_callbacks._nanquest = True
    handler.install_callbacks = install_callbacks


WATCHED = {"torch._dynamo.callback": _watch_compiling, "torch._inductor.output_code": _watch_calls,
           "torch._inductor.compile_fx": _watch_compiler}


class _Finder(importlib.abc.MetaPathFinder):
    """Waits for the modules to be imported: those of a program which compiles nothing never are."""

    def __init__(self, waiting):
        self.waiting = set(waiting)

    def find_spec(self, name, path=None, target=None):
        if name not in self.waiting:
            return None
        self.waiting.discard(name)
        if not self.waiting:
            _stop_waiting()
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or not hasattr(spec.loader, "exec_module"):
            return None
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            WATCHED[name](module)

        spec.loader.exec_module = exec_module
        return spec


def _stop_waiting() -> None:
    global _finder
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
    _finder = None


def install(attachment) -> None:
    """Wraps both now, or when they are made."""
    global _attachment, _finder
    _attachment = attachment
    _stop_waiting()
    for name, watch in WATCHED.items():
        if name in sys.modules:
            watch(sys.modules[name])
    waiting = [name for name in WATCHED if name not in sys.modules]
    if waiting:
        _finder = _Finder(waiting)
        sys.meta_path.insert(0, _finder)


def remove() -> None:
    global _attachment
    _attachment = None
    _stop_waiting()
