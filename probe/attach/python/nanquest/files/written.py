"""Looks at what the program writes to disk, before it is written: weights, buffers and moments with NaN or Inf, and copies of them.

A failure here never harms the write: then files are no longer looked at, and one line says so.
"""

from __future__ import annotations

import os
import sys
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
from .clean_files import CleanFiles
from .contents import tensors_in
from .state_names import StateNames

_FRAMES = 16  # callers that are asked for the path of what is written into a buffer
_PATHS = ("path", "filepath", "filename", "file_path", "save_path", "checkpoint_path", "ckpt_path", "output_path", "file")


def path_of(target) -> str:
    """The path that a program writes to, as far as it can be known: of a path, an open file, or a buffer whose writer names it; else ""."""
    if isinstance(target, (str, os.PathLike)):
        return os.fspath(target)
    if isinstance(name := getattr(target, "name", None), str):
        return name
    frame = sys._getframe(1)
    for _ in range(_FRAMES):
        if (frame := frame.f_back) is None:
            break
        if frame.f_globals.get("__name__", "").startswith(("torch.", "nanquest.")):
            continue
        for name in _PATHS:
            if isinstance(value := frame.f_locals.get(name), (str, os.PathLike)):
                return os.fspath(value)
    return ""


def bad_in_words(shown: str, elements: int, nan: int, inf: int, more: int) -> str:
    """Like "0.weight has 3 NaN in 128 values (2 more tensors are bad)"."""
    counts = " and ".join(f"{number} {what}" for number, what in ((nan, "NaN"), (inf, "Inf")) if number)
    others = f" ({more} more {'tensors are' if more > 1 else 'tensor is'} bad)" if more else ""
    return f"{shown} has {counts} in {elements} values{others}"


class _Bad:
    """The first bad tensor of a file, and how many more there are."""

    def __init__(self, rows):
        (self.found, self.entry, self.nan, self.inf), self.more = rows[0], len(rows) - 1
        known = [entry for _, entry, _, _ in rows if entry is not None]
        self._since = next((entry for entry in known if entry.since >= 0), None)

    def in_words(self, step, incidents) -> str:
        """`step`: the one that runs, None on another thread."""
        text = bad_in_words(self.found.shown, self.found.tensor.numel(), self.nan, self.inf, self.more)
        if self._since is not None:
            file = incidents.get(self._since.since)
            text += f", bad since step {self._since.since}"
            text += f", written by {self._since.op}" if self._since.op else ""
            return text + (f" ({shorter(file)})" if file else "")
        own = step is not None and self.entry is not None and self.entry.memory == self.found.tensor.untyped_storage().data_ptr()
        return text + (f", last written by {self.entry.op} in step {step}" if own and self.entry.op else "")


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
                seen = self._before(value_of, target_of, args, kwargs)
                result = own(*args, **kwargs)
                if seen:
                    self._safely(self.files.clean, seen)
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

    def _before(self, value_of, target_of, args, kwargs) -> str:
        """The path, if the file is clean and its path is known."""

        def look():
            if torch.compiler.is_compiling() or elsewhere():
                return ""
            path = path_of(target_of(args, kwargs))
            return self.look(value_of(args, kwargs), path)

        return self._safely(look) or ""

    def names(self) -> StateNames:
        """Of the program's state, as it is now. Another thread than the training one gets what is known already."""
        if self._attachment.on_training_thread():
            self._names = StateNames(self._attachment.ops.state_names())
        return self._names or StateNames("")

    def step_made(self) -> None:
        """On the training thread: other threads get the names of the first updates."""
        if self._names is None and not self._off:
            self._safely(self.names)

    def look(self, value, path: str) -> str:
        """Looks at what is about to be written. Returns `path` if state was found and all of it is finite, else ""."""
        found = tensors_in(value)
        if not found or "grad" in os.path.basename(path).lower():
            return ""
        names, here = self.names(), self._attachment.on_training_thread()
        state = names.state_among(found, memory=here)
        if not state:
            return ""
        numbers = self._attachment.ops.non_finite([it.tensor.detach() for it, _ in state])
        bad = [(it, entry, nan, inf) for (it, entry), nan, inf in zip(state, numbers[::2], numbers[1::2]) if nan or inf]
        bad = [row for row in bad if row[1] is None or not row[1].may_be_meant(row[2])]
        bad = [row for row in bad if not here or not self._is_gradient(*row)]
        if not bad:
            return path
        self._is_bad(_Bad(bad), path)
        return ""

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

    def _is_bad(self, bad: _Bad, path: str) -> None:
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
