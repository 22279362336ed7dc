"""What a program has read back before its first update: weights, buffers and moments with NaN or Inf, and a resume that is not what was
saved (resumed.py). Said once of each kind, before the first step. Later loads are the program's own business: a target network, a best
model.

A failure here never harms the load: then loads are no longer looked at, and one line says so.
"""

from __future__ import annotations

import math
import weakref

import torch

from ..base.probe_state import probe
from ..base.rank import place_in_group
from ..base.run_directory import shorter
from ..base.say import say
from ..pytorch.guarded import elsewhere
from ..pytorch.names import is_plain
from ..pytorch.shards import own_part
from ..pytorch.values import aside
from ..tell.findings import BAD_LOAD
from .bad_tensors import bad_in_words
from .contents import scales_in, tensors_in
from .given import Given
from .resumed import Resumed
from .target_path import path_of

MOST_READS = 64


def _address(tensor) -> int:
    return tensor.untyped_storage().data_ptr()


class Loads:
    """The loads of this process, until it has made its first updates."""

    def __init__(self, attachment):
        self._attachment = attachment
        self._reads = []  # (path, addresses of its tensors), newest last
        self._scales = []  # that were read
        self._buffers = {}  # id of a buffer that was loaded -> whether it held NaN before
        self._resumed = {}  # id of an optimizer -> Resumed
        self._looked = weakref.WeakSet()  # models
        self._scalers = weakref.WeakSet()  # loss scalers
        self._said = set()
        self._any = self._over = self._off = False
        self._given = Given()  # also by later loads

    def _counts(self) -> bool:
        """Whether a load counts: no update has been made."""
        attachment = self._attachment
        if self._over or self._off or attachment.off or attachment.paused or torch.compiler.is_compiling() or elsewhere():
            return False
        # A first update that calls the model itself has begun already. Programs that write weights by hand make no update.
        return not attachment.started or attachment.ops.steps_made() <= 1

    def update_made(self) -> None:
        if not self._over:
            self._over, self._reads, self._buffers = True, [], {}

    def _safely(self, work, *args):
        try:
            return work(*args)
        except Exception as error:  # noqa: BLE001 (a load must not fail because of the probe)
            self._off = True
            say(f"what is loaded is no longer looked at: {type(error).__name__}: {' '.join(str(error).split())[:200]}")
            return None

    def _say(self, what: str, label: str, text: str, tensor: str, file: str) -> None:
        if what not in self._said:
            self._said.add(what)
            text += f" (read from {shorter(file)})" if file else ""
            self._attachment.findings.add(BAD_LOAD, label, text, tensor, file)

    # What the program reads and loads.

    def read(self, value, target) -> None:
        """`value` was read from `target`, or is about to be."""
        if self._counts():
            self._safely(self._read, value, target)

    def _read(self, value, target) -> None:
        self._any = True
        self._scales += scales_in(value)
        self._note_read(path_of(target), value)

    def _note_read(self, path: str, value) -> None:
        addresses = {_address(found.tensor) for found in tensors_in(value)}
        if addresses and path:
            self._reads = [*self._reads, (path, addresses)][-MOST_READS:]

    def file_of(self, tensors) -> str:
        """The path that these were read from, "" if it is not known."""
        found = {_address(tensor) for tensor in tensors if is_plain(tensor)}
        return next((path for path, addresses in reversed(self._reads) if found & addresses), "")

    def module_begins(self, module):
        """Before its load_state_dict: which buffers hold NaN on purpose, by name."""
        return self._safely(self._nan_buffers, module) if self._counts() else None

    @staticmethod
    def _nan_buffers(module) -> set:
        plain = {name: it for name, it in module.named_buffers() if is_plain(it) and it.is_floating_point()}
        return {name for name, it in plain.items() if bool(it.isnan().any())}

    def module_loaded(self, module, state, before) -> None:
        if not self._off:
            self._safely(self._given.loaded, module, state)
            if self._attachment.started and not self._attachment.off and self._attachment.settings.level == "guard":  # no op shows it
                self._attachment.ops.loaded([part for part in map(own_part, module.parameters()) if is_plain(part)])
        if before is not None:
            self._safely(self._module_loaded, module, state, before)

    def _module_loaded(self, module, state, before: set) -> None:
        self._any = True
        for name, buffer in module.named_buffers():
            if name in state:
                self._buffers[id(buffer)] = name in before
        if file := self.file_of([found.tensor for found in tensors_in(state)]):
            self._note_read(file, [*module.parameters(), *module.buffers()])  # copies of what was read

    def optimizer_begins(self, optimizer):
        """Before its load_state_dict: its rates."""
        return [group.get("lr") for group in optimizer.param_groups] if self._counts() else None

    def optimizer_loaded(self, optimizer, state, before) -> None:
        if before is not None:
            self._safely(self._optimizer_loaded, optimizer, state, before)

    def _optimizer_loaded(self, optimizer, state, before: list) -> None:
        self._any = True
        file = self.file_of([found.tensor for found in tensors_in(state)])
        self._resumed[id(optimizer)] = Resumed(optimizer, state, before, file)

    # What is said, before the first step.

    def first_pass(self, program, root) -> None:
        """A model that trains is about to be called."""
        if not self._off:
            self._safely(self._given.first_pass, program, root)
        if not self._off and not self._over:
            self._safely(self._first_pass, program, root)

    def _first_pass(self, program, root) -> None:
        if root not in self._looked and self._counts():
            self._looked.add(root)
            self._look_at_weights(program, root)

    def _look_at_weights(self, program, root) -> None:
        # Transformers' from_pretrained fills weights one by one; it notes where they are from.
        pretrained = next((str(name) for it in root.modules() if (name := vars(it).get("name_or_path"))), "")
        if not self._any and not pretrained:
            return
        named = [(program.numbers.of(p), name, p) for name, p in root.named_parameters()]
        weights = [(known[1] if known else name, own_part(p), p.requires_grad) for known, name, p in named]
        weights += [(name, b, None) for name, b in root.named_buffers() if self._buffers.get(id(b)) is False]
        weights = [it for it in weights if is_plain(it[1]) and it[1].is_floating_point()]
        parts = [part.detach() for _, part, _ in weights]
        numbers = self._attachment.ops.non_finite(parts) if parts else []
        bad = [(*it, nan, inf) for it, nan, inf in zip(weights, numbers[::2], numbers[1::2]) if nan or inf]
        # Infinities may be meant: masks, and transitions that can't be.
        bad = [row for row in bad if row[3] or (row[2] and self._reaches_up(row[1]))]
        if bad and self._speaks("weights"):
            name, part, _, nan, inf = bad[0]
            text = f"the loaded weights hold NaN or Inf: {bad_in_words(name, part.numel(), nan, inf, len(bad) - 1)}"
            self._say("weights", "BAD_STATE", text, name, self.file_of([part]) or pretrained)

    def _reaches_up(self, tensor) -> bool:
        with aside(self._attachment.ops):
            return bool((tensor == math.inf).any())

    @staticmethod
    def _speaks(what: str) -> bool:
        """Of several ranks one says it, but each that has weights of its own says what is wrong with them."""
        return place_in_group()[0] == 0 or (what in ("weights", "moments") and not probe.times_replicated)

    def before_update(self, program, optimizer) -> None:
        """Gradients are there, and nothing of the update has begun."""
        resumed = self._resumed.get(id(optimizer))
        if resumed is None or self._off:
            return
        if resumed.optimizer() is not optimizer or not resumed.waits():
            del self._resumed[id(optimizer)]
        else:
            names = program.written.of(optimizer)[1].names
            for what, label, text, tensor in self._safely(resumed.look, self._attachment.ops, names) or ():
                if self._speaks(what):
                    self._say(what, label, text, tensor, resumed.file)

    def scaled_step(self, scaler, optimizer) -> None:
        """A loss scaler is about to make its step."""
        resumed = self._resumed.get(id(optimizer))
        if resumed is not None and scaler not in self._scalers and not self._off and self._speaks("scale"):
            self._scalers.add(scaler)
            self._safely(self._look_at_scale, scaler, resumed)

    def _look_at_scale(self, scaler, resumed) -> None:
        scale = scaler.get_scale()
        if not math.isfinite(scale) or scale <= 0:
            self._say("scale", "BAD_STATE", f"the loss scale begins with {scale:g}: every step will be bad, or skipped", "loss_scale", "")
        elif self._scales and scale not in self._scales:
            text = (
                f"the loss scale is {scale:g}, and what was read has {self._scales[-1]:g}, beside the optimizer's state that was loaded: "
                "load the scaler's state, too (scaler.load_state_dict)"
            )
            self._say("scale", "BAD_STATE", text, "loss_scale", resumed.file)
