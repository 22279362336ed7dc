"""Looks at what the program writes to disk, while it is written (with refuse, before): weights, buffers and moments with NaN or Inf, and copies of them.

A failure here never harms the write: then files are no longer looked at, and one line says so.
"""

from __future__ import annotations

import dataclasses
import os
import threading

import torch

from ..base.errors import BadCheckpoint
from ..base.probe_state import probe
from ..base.run_directory import shorter
from ..base.say import say
from ..pytorch.guarded import elsewhere
from ..pytorch.names import is_plain
from ..pytorch.shards import own_part
from ..tell.findings import BAD_CHECKPOINT
from .bad_tensors import BadTensors
from .clean_files import CleanFiles
from .contents import tensors_in
from .counting import Counting
from .state_names import StateNames
from .target_path import path_of


@dataclasses.dataclass
class _Look:
    path: str
    here: bool  # on the training thread
    state: list  # [(Found, Entry or None)] of the program's state in the file
    counting: Counting
    bad: list = dataclasses.field(default_factory=list)


class Writes:
    """The files that this process writes."""

    def __init__(self, attachment):
        self._attachment = attachment
        self._refuses = attachment.settings.bad_checkpoint == "refuse"
        self._names = None  # StateNames
        self._inside = threading.local()
        self._off = False
        self.files = CleanFiles()

    def around(self, own, value_of, target_of):
        """`own`, a function that writes value_of(arguments) to target_of(arguments)."""

        def write(*args, **kwargs):
            if self._off or not self._looks() or getattr(self._inside, "write", False):
                return own(*args, **kwargs)
            self._inside.write = True
            try:
                look = self._before(value_of, target_of, args, kwargs)
                result = own(*args, **kwargs)
                if look is not None:
                    self._safely(self._after, look)
                return result
            finally:
                self._inside.write = False

        return write

    def _looks(self) -> bool:
        attachment = self._attachment
        return probe.attachment is attachment and attachment.started and not attachment.off and not attachment.paused

    def _safely(self, work, *args):
        try:
            return work(*args)
        except BadCheckpoint:
            raise
        except Exception as error:  # noqa: BLE001 (a write must not fail because of the probe)
            self._off = True
            say(f"files are no longer looked at when they are written: {type(error).__name__}: {' '.join(str(error).split())[:200]}")
            return None

    def _before(self, value_of, target_of, args, kwargs):
        """A _Look whose tensors are read while the file is written, None if there is nothing to look at. What is to be refused is looked
        at now."""

        def begin():
            if torch.compiler.is_compiling() or elsewhere():
                return None
            path = path_of(target_of(args, kwargs))
            look = self._look(value_of(args, kwargs), path)
            if look is not None and self._refuses:
                self._judge(look)
            return look

        return self._safely(begin)

    def _after(self, look) -> None:
        """The file is written."""
        if not self._refuses:
            self._judge(look)
        if look.path and not look.bad:
            self.files.clean(look.path)

    def names(self) -> StateNames:
        """Of the program's state, as it is now. Another thread than the training one gets what is known already."""
        if self._attachment.on_training_thread():
            self._names = StateNames(self._attachment.ops.state_names())
        return self._names or StateNames("")

    def step_made(self) -> None:
        """On the training thread: other threads get the names of the first updates."""
        if self._names is None and not self._off:
            self._safely(self.names)

    def _look(self, value, path: str):
        found = tensors_in(value)
        if not found or "grad" in os.path.basename(path).lower():
            return None
        names, here = self.names(), self._attachment.on_training_thread()
        state = names.state_among(found, memory=here)
        tensors = [it.tensor.detach() for it, _ in state]
        return _Look(path, here, state, Counting(self._attachment.ops, tensors, beside=not self._refuses)) if state else None

    def _judge(self, look) -> None:
        numbers = look.counting.result()
        bad = [(it, entry, nan, inf) for (it, entry), nan, inf in zip(look.state, numbers[::2], numbers[1::2]) if nan or inf]
        bad = [row for row in bad if row[1] is None or not row[1].may_be_meant(row[2])]
        look.bad = [row for row in bad if not look.here or not self._is_gradient(*row)]
        if look.bad:
            self._is_bad(BadTensors(look.bad), look.path)

    def _is_gradient(self, found, entry, nan, inf) -> bool:
        """Whether it is a weight's gradient, or a copy of one: as bad as that, and not as bad as the weight itself."""
        if entry is None or entry.kind != "parameter" or entry.since >= 0:
            return False
        number, program = self._attachment.ops.non_finite, probe.program
        for parameter in (p for optimizer in program.written.optimizers() for group in optimizer.param_groups for p in group["params"]):
            known = program.numbers.of(parameter)
            if known is not None and known[1] == entry.name and parameter.grad is not None:
                part, gradient = own_part(parameter).detach(), own_part(parameter.grad).detach()
                counts = [*number([gradient, part])] if is_plain(gradient) else [0, 0, nan, inf]
                return counts[:2] == [nan, inf] != counts[2:]
        return False

    def _is_bad(self, bad: BadTensors, path: str) -> None:
        if path:
            self.files.bad(path, written=not self._refuses)
        clean = self.files.last(path) if path else ""
        where = shorter(path) if path else "what is saved into a buffer"
        head = f"{where} is not written: " if self._refuses else f"{where} holds NaN or Inf: "
        last = f"last clean file: {shorter(clean)}" if clean else "no clean file of this series is there"
        here = self._attachment.on_training_thread()
        step = self._attachment.ops.step() if here else None
        text = f"{head}{bad.in_words(step, self._attachment.incident_files)}; {last}"
        self._attachment.findings.add(BAD_CHECKPOINT, "BAD_STATE", text, bad.found.shown, path, quiet=self._refuses)
        if self._refuses:
            raise BadCheckpoint(text, path, bad.found.shown)
