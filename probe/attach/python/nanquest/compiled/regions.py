"""Graphs that torch.compile gave to the Inductor: the library records each call as one region.

Observers don't see what runs inside, because kernels write memory without calling operators. So the library also gets the graph that was
compiled, once (region_graph.py). A file of a bad step contains it, and replay runs its operators one by one. Other backends call operators,
which are observed.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import threading
import time

import torch

from ..base.import_watch import Waiting
from ..base.probe_state import probe
from ..pytorch import private
from . import not_compiled, region_graph, region_updates

NO_GRAPH = -1  # of a region whose graph is unknown: compiled before the probe was attached, or from a cache

_inside = threading.local()  # .depth: number of nested regions running on this thread
_numbers = itertools.count()
_PROCESS = (os.getpid(), time.time_ns())
_untold = []  # (number, graph) that the library does not know yet


def _records() -> bool:
    """Whether ops are recorded in this process, or will be."""
    return probe.current is not None and not probe.current.off and probe.current.settings.level != "guard"


@contextlib.contextmanager
def _in_region():
    _inside.depth = getattr(_inside, "depth", 0) + 1
    try:
        yield
    finally:
        _inside.depth -= 1


def in_region() -> bool:
    """Whether a region runs on this thread. What happens in it belongs to the region: for example a captured graph that the compiler
    made of its kernels (mode "reduce-overhead")."""
    return getattr(_inside, "depth", 0) > 0


def _tensors(values):
    return [value for value in values if isinstance(value, torch.Tensor)]


def _written(graph, inputs) -> dict:
    """The tensors that it writes, by their positions among its tensor arguments."""
    places = getattr(graph, "mutated_input_idxs", ())
    if not places:
        return {}
    at = itertools.count()
    numbers = {i: next(at) for i, value in enumerate(inputs) if isinstance(value, torch.Tensor)}
    return {numbers[i]: inputs[i] for i in sorted(places) if i in numbers}


def _traces(values) -> bool:
    """Whether PyTorch calls with tensors that have shapes only, as it does while it compiles, under a mode of its own."""
    return private.dispatch_modes() > 0 and any(
        isinstance(value, torch.Tensor) and (private.is_fake(value) or isinstance(value, private.FunctionalTensor)) for value in values
    )


def _tell(attachment, name, *arguments) -> None:
    """Calls the library's operator of this name."""
    try:
        operator = getattr(attachment.ops, name)
        if private.dispatch_modes() > 0:  # the first call of compiled code runs under a mode of PyTorch's own
            with private.without_modes():
                operator(*arguments)
        else:
            operator(*arguments)
    except Exception as error:  # noqa: BLE001 (a training must not end because of the probe)
        attachment.give_up(f"the probe is off: a compiled graph: {type(error).__name__}: {str(error)[:300]}")


def _around_call(run):
    def call(self, inputs):
        attachment = probe.current
        if attachment is None or attachment.off or not attachment.started or _traces(inputs):
            return run(self, inputs)
        probe.regions_ran = True
        process, number = getattr(self, "_nanquest_graph", (None, NO_GRAPH))
        _tell_graphs(attachment)
        written = _written(self, inputs)
        update = region_updates.begin(self, written.values())
        if update is not None and update.is_left_out(self):
            if isinstance(inputs, list):  # the caller expects its inputs to be freed
                inputs.clear()
            update.end()
            return ()
        if update is None:
            region_updates.may_begin_step()
        # The inputs must not be held while it runs: the graph frees each input after its last use.
        _tell(
            attachment,
            "begin_region",
            _tensors(inputs),
            number if process == _PROCESS else NO_GRAPH,
            [value for value in inputs if isinstance(value, int)],
            [*written],
            [*written.values()],
        )
        del written
        try:
            with _in_region():
                outputs = run(self, inputs)
        except BaseException:
            _tell(attachment, "leave_region")
            raise
        _tell(attachment, "end_region", _tensors(outputs if isinstance(outputs, (tuple, list)) else (outputs,)))
        if update is not None:
            update.end()
        return outputs

    return call


def _around_compiler(own):
    """The function that receives every graph, forward or backward."""

    def compile_inner(graph_module, *args, **kwargs):
        told = region_graph.told(graph_module) if _records() else None  # before lowering changes it
        result = own(graph_module, *args, **kwargs)
        if told is not None:
            _number(result, told)
        return result

    return compile_inner


def _number(compiled, told) -> None:
    number = next(_numbers)
    try:
        compiled._nanquest_graph = (_PROCESS, number)  # caches keep it: in another process the number has no meaning
    except Exception:  # noqa: BLE001 (a result of another kind, whose calls are not observed)
        return
    _untold.append((number, told))


def _tell_graphs(attachment) -> None:
    """What was compiled before training began is reported only when a region runs in it."""
    while _untold:
        _tell(attachment, "region_graph", *_untold.pop())


def _around_cache(own):
    """If PyTorch takes a compiled function from its cache of autograd graphs, the graph is not seen. So this cache is not used, unless the
    program asks for it. Compiled code has another cache."""
    if "TORCHINDUCTOR_AUTOGRAD_CACHE" in os.environ:
        return own

    def should_use_local_autograd_cache():
        settings = private.autograd_config.owner()
        wanted = any(getattr(settings, name, False) for name in ("force_autograd_cache", "strict_autograd_cache", "bundled_autograd_cache"))
        return own() if wanted or not _records() else False

    return should_use_local_autograd_cache


def _around_compiling(own):
    """Around each compilation of a frame or of its backward: operations that run meanwhile do not belong to the program."""

    @contextlib.contextmanager
    def install_callbacks(self, *args, **kwargs):
        attachment = probe.current
        if attachment is not None and not attachment.off:
            not_compiled.leave(probe.update_hooks)  # what has been imported since
        away = attachment is not None and not attachment.off and attachment.started
        if away:
            _tell(attachment, "compiling", True)
        try:
            with own(self, *args, **kwargs):
                yield
        finally:
            if away:
                _tell(attachment, "compiling", False)

    return install_callbacks


def _put_once(name, around, module) -> None:
    """Replaces the function of this name by around(own), for as long as the process lives."""
    own = name.find()
    if own is not None and not getattr(own, "_nanquest", False):
        stand_in = functools.wraps(own)(around(own))
        stand_in._nanquest = True
        setattr(name.owner(), name.last, stand_in)


_waiting = Waiting(
    {
        name.module: functools.partial(_put_once, name, around)
        for name, around in (
            (private.compiling, _around_compiling),
            (private.use_autograd_cache, _around_cache),
            (private.compiled_call, _around_call),
            (private.compile_inner, _around_compiler),
        )
    }
)


def install() -> None:
    """Wraps the object now, or when it is created."""
    _waiting.remove()
    _waiting.begin()


def remove() -> None:
    _waiting.remove()
