"""Updates of optimizers that read no word of a device: what they overwrite is kept there and put back if the step is bad, and nobody waits.

The device does so by the library's kernels. What an optimizer counts on the host (Adam's steps) is put back when the answer is known, which is
before its next update.
"""

from __future__ import annotations

import weakref

import torch

from ..pytorch.names import is_plain
from ..pytorch.values import aside

# They write weights and state in place, and nothing else.
_IN_PLACE = (
    torch.optim.SGD,
    torch.optim.Adam,
    torch.optim.Adagrad,
    torch.optim.Adadelta,
    torch.optim.Adamax,
    torch.optim.NAdam,
    torch.optim.RAdam,
    torch.optim.RMSprop,
)


class KeptUpdate:
    def __init__(self, attached):
        self._attached = attached
        self._update = None  # (optimizer, tensors on the device, tensors on the host) of the update that may be kept
        self._running = False
        self._counts = {}  # number of a word -> (step, optimizer, tensors on the host, their values before)
        self._replaces = weakref.WeakSet()  # optimizers that put other tensors in the place of their moments

    def why_not(self, optimizer) -> str:
        """Why the device can't keep what the coming update overwrites; "" if there is room for it. The optimizer has made its state."""
        name, step = type(optimizer).__name__, self._attached.ops.step()
        if not isinstance(optimizer, _IN_PLACE):
            return f"what {name} overwrites is not known before its update"
        if optimizer in self._replaces:
            return f"{name} replaced its moments during an update"
        if any(entry[:2] == (step, id(optimizer)) for entry in self._counts.values()):
            return f"{name} makes several updates in a step"
        tensors = self._overwritten(optimizer)
        if not all(isinstance(it, torch.Tensor) and is_plain(it) for it in tensors):
            return f"{name} has weights or state that are no plain tensors"
        there, here = [it for it in tensors if not it.is_cpu], [it for it in tensors if it.is_cpu]
        why = self._attached.ops.room_for_update(there)
        self._update = None if why else (optimizer, there, here)
        return why

    @staticmethod
    def _overwritten(optimizer) -> list:
        found = []
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    found += [p, *(it for it in optimizer.state.get(p, {}).values() if it is not None)]
        return found

    def begins(self) -> None:
        """An update begins that `why_not` had nothing against."""
        optimizer, _, here = self._update
        number = self._attached.ops.keep_update()
        if not number:  # the gate has answered
            self._update = None
            return
        self._running, step = True, self._attached.ops.step()
        self._counts = {key: entry for key, entry in self._counts.items() if entry[0] >= step - 1}
        with aside(self._attached.ops):
            self._counts[number] = step, id(optimizer), here, [it.clone() for it in here]

    def ends(self) -> None:
        """It is over, or failed."""
        if self._running:
            self._attached.ops.put_back_update()
            optimizer, there, here = self._update
            if {*map(id, self._overwritten(optimizer))} != {*map(id, there), *map(id, here)}:
                self._replaces.add(optimizer)
        self._update, self._running = None, False

    def left_out(self, number: int) -> None:
        """The update that had this word was put back."""
        _, _, tensors, values = self._counts.pop(number, (0, 0, (), ()))
        with aside(self._attached.ops):
            for tensor, value in zip(tensors, values):
                tensor.copy_(value)
