"""Updates that their device leaves out by itself if they are bad, so that nobody waits for the check.

The library's look at the gradients leaves one number on the device: 1 if the update is bad, else 0. PyTorch's fused optimizers read
such a number, `found_inf`, and then leave weights, moments and step count as they are. A loss scaler sets it too; the library's number
then includes it. What others of PyTorch's optimizers overwrite is kept and put back by that number (KeptUpdate).
"""

from __future__ import annotations

import torch

from ..base.rank import place_in_group
from ..base.settings import WITHHOLDS
from ..policy.fp32_obstacles import can_skip
from .kept_update import KeptUpdate

_READ_IT = (torch.optim.Adam, torch.optim.SGD, torch.optim.Adagrad)  # if fused; AdamW is an Adam
_NONE = object()


class DeviceWord:
    def __init__(self, program):
        settings = program.attached.settings
        self._program = program
        self._wanted = settings.gate == "later" and settings.on_incident in (*WITHHOLDS, "stop")
        self._put = None  # (optimizer, its found_inf before, ours) while an update runs
        self._kept = KeptUpdate(program.attached)
        self._together = False  # the library knows that the gradients alone decide
        self.compiled = False  # the update that begins is compiled, and reads no attribute

    def fits(self, optimizer, parameters) -> bool:
        """Whether this update may be made before the library has answered. If not, the reason is said once."""
        if not self._wanted or not parameters or parameters[0].is_cpu:
            return False
        why = self._why_not(optimizer)
        if not why and self._makes_state(optimizer, parameters):
            return False
        if not why and not self._reads_it(optimizer):
            why = self._kept.why_not(optimizer)
        if why:
            self._program.attached.say_once(f"each step waits for its gate: {why}")
        return not why

    def _why_not(self, optimizer) -> str:
        if place_in_group()[1] > 1:
            if (policy := self._program.attached.settings.on_incident) != "skip":
                return f"with --on-incident {policy} several processes must do so in the same step"
            if not self._program.parallel:
                return "several processes that are not in DistributedDataParallel vote whether an update is skipped"
            if not self._together:
                self._together = True
                self._program.attached.ops.decides_together()
        name = type(optimizer).__name__
        if self.compiled:
            return f"{name}.step is compiled"
        if not can_skip(optimizer):
            return f"{name}.step is not PyTorch's own"
        return ""

    @staticmethod
    def _reads_it(optimizer) -> bool:
        return isinstance(optimizer, _READ_IT) and all(group.get("fused") for group in optimizer.param_groups)

    def _makes_state(self, optimizer, parameters) -> bool:
        """Whether the update makes moments: if a device left it out, there would be none, or some that were never written."""
        if isinstance(optimizer, torch.optim.SGD):
            if not any(group["momentum"] for group in optimizer.param_groups):
                return False
            return any(p.grad is not None and optimizer.state.get(p, {}).get("momentum_buffer") is None for p in parameters)
        return not self._reads_it(optimizer) and any(p.grad is not None and not optimizer.state.get(p) for p in parameters)

    def put(self, optimizer) -> None:
        """An update begins that `fits`."""
        if not self._reads_it(optimizer):
            self._kept.begins()
            return
        word = self._program.attached.ops.gate_word()
        if word is not None:
            self._put = optimizer, getattr(optimizer, "found_inf", _NONE), word
            optimizer.found_inf = word

    def take_back(self) -> None:
        """It is over, or failed."""
        self._kept.ends()
        if self._put is None:
            return
        (optimizer, before, word), self._put = self._put, None
        if getattr(optimizer, "found_inf", None) is not word:
            return
        if before is _NONE:
            del optimizer.found_inf
        else:
            optimizer.found_inf = before

    def left_out(self, number: int) -> None:
        """The device has left out the update that had this word (its number, as the library tells it)."""
        self._kept.left_out(number)
