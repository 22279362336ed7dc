"""Graphs of a device's work that the program captures and replays (torch.cuda.graph, torch.accelerator.Graph).

During a capture nothing runs, and waiting for the device would break it, so the probe is detached meanwhile. What a replay computes
can't be observed, so a step with a replay has no file. A replay that contains an update is a step of its own; its gradients are
judged afterwards, in the memory where the capture put them. Graphs that a compiled region captures and replays by itself don't count:
the region is recorded.
"""

from __future__ import annotations

import weakref

import torch
from torch.optim import optimizer as optimizers

from ..base.probe_state import probe
from ..pytorch.guarded import guarded
from ..steps.program import known_program
from . import regions

SEEN = (
    "this program captures a graph of the device's work; what its replays compute can't be observed. If a replay contains the update, "
    "gradients are judged after it, too late to skip it. A bad step with a replay has no file; run without graphs to get one"
)

_updates = weakref.WeakKeyDictionary()  # graph -> weak optimizers whose update it holds


def _begins(own):
    def capture_begin(graph, *args, **kwargs):
        attached = probe.attachment
        if probe.capture is None and attached is not None and not attached.off and not regions.in_region():
            if attached.started:
                attached.ops.capture(True)
                attached.say_once(SEEN)
            _updates[graph] = []
            probe.capture, probe.attachment = (graph, attached), None
        try:
            return own(graph, *args, **kwargs)
        except BaseException:
            _comes_back(graph)
            raise

    return capture_begin


def _ends(own):
    def capture_end(graph, *args, **kwargs):
        try:
            return own(graph, *args, **kwargs)
        finally:
            _comes_back(graph)

    return capture_end


def _comes_back(graph) -> None:
    if probe.capture is None or probe.capture[0] is not graph:
        return
    attached, probe.capture = probe.capture[1], None
    if probe.attachment is None and not attached.off:
        probe.attachment = attached
        if attached.started:
            attached.ops.capture(False)


def _in_capture(optimizer, args, kwargs) -> None:
    if probe.capture is not None:
        _updates[probe.capture[0]].append(weakref.ref(optimizer))


def _replays(own):
    def replay(graph, *args, **kwargs):
        result = own(graph, *args, **kwargs)
        if not regions.in_region():
            _ran(graph)
        return result

    return replay


@guarded
def _ran(attached, graph):
    if not attached.started:
        return
    attached.ops.graph_ran()
    for optimizer in _updates.get(graph, ()):
        if (optimizer := optimizer()) is not None:
            _updated(attached, optimizer)


def _updated(attached, optimizer) -> None:
    """Handles an update that has been made already."""
    program = known_program()
    attached.heed(attached.ops.begin_forward())
    attached.ops.graph_ran()
    program.updates.was_made(attached, optimizer)
    attached.step_made()


def install(patches) -> list:
    """Begins to observe graphs. Returns the function that ends it, apart from the patches."""
    for owner in (torch.cuda.CUDAGraph, getattr(torch.accelerator, "Graph", None), getattr(torch.xpu, "XPUGraph", None)):
        if owner is not None:
            for name, around in (("capture_begin", _begins), ("capture_end", _ends), ("replay", _replays)):
                patches.put(owner, name, around)
    return [optimizers.register_optimizer_step_post_hook(_in_capture)]
