"""Updates inside compiled regions. Compilation removes the optimizer's hooks, so a region that writes weights of an optimizer stands for
its update."""

from __future__ import annotations

import itertools
import weakref

from ..base.probe_state import probe
from ..pytorch.guarded import guarded, in_backward
from ..pytorch.names import is_plain, living_optimizers
from ..pytorch.shards import own_part

_known = {}  # id of a compiled graph -> (weak reference to it, weak reference to its optimizer, None if it has none)


def remove() -> None:
    _known.clear()


def _weights(optimizer):
    return itertools.chain.from_iterable(group["params"] for group in optimizer.param_groups)


def _optimizer_of(graph, written):
    """The optimizer whose weights are among these. Searched once per graph, because the search visits all live objects."""
    known, optimizer = _known.get(id(graph), (None, None))
    if known is not None and known() is graph and (optimizer is None or optimizer() is not None):
        return optimizer and optimizer()
    for key in [key for key, (made, _) in _known.items() if made() is None]:
        del _known[key]
    memory = {tensor.data_ptr() for tensor in written if tensor.numel()}
    found = next(
        (
            optimizer
            for optimizer in living_optimizers()
            if any(is_plain(part) and part.data_ptr() in memory for part in map(own_part, _weights(optimizer)))
        ),
        None,
    )
    _known[id(graph)] = weakref.ref(graph), found and weakref.ref(found)
    return found


class Update:
    """The update that a compiled graph makes."""

    def __init__(self, optimizer):
        self._optimizer = optimizer

    def is_left_out(self, graph) -> bool:
        """Whether to skip the graph's call. That is only possible if it returns nothing."""
        updates = probe.program and probe.program.updates
        return bool(updates and updates.leaves_out_in_region(not graph.output_strides))

    def end(self) -> None:
        probe.update_hooks[1](self._optimizer, (), {})


@guarded
def may_begin_step(attachment):
    """A compiled graph that is not an update is about to run. If the caller of the model is compiled too, this is the only sign that a
    pass begins."""
    program = probe.program
    if program is not None and program.policy.withholds and not program.depth and not in_backward():
        program.policy.undo.begins()


@guarded
def begin(attachment, graph, written):
    """A compiled graph that writes these tensors is about to run. Returns its Update, or None if the optimizer's hooks did run: its step
    is called uncompiled and only compiled further inside."""
    if not probe.update_hooks or not written or (probe.program is not None and probe.program.updates.running):
        return None
    optimizer = _optimizer_of(graph, written)
    if optimizer is None:
        return None
    word = probe.program and probe.program.updates.word
    if word:
        word.compiled = True
    probe.update_hooks[0](optimizer, (optimizer,), {})
    if word:
        word.compiled = False
    return Update(optimizer)
