"""Looks whether anything is learned: at three of the first updates of each optimizer, then at every 500th. In between it counts.

What is found is one line and one row of the manifest, once for each reason. A failure here never harms the training: then nothing is
looked at any more, and one line says so.
"""

from __future__ import annotations

import torch

from ..base.rank import place_in_group
from ..base.say import say
from ..pytorch.guarded import elsewhere
from ..pytorch.names import leaves_below
from ..pytorch.optimizers import parameters_of, rates_of
from ..tell.findings import NOTHING_LEARNED
from . import not_cleared, underflow
from .averages import Averages
from .no_gradient import NoGradient
from .recomputed import Recomputed
from .scaler import SkippingScalers
from .swallowed import Swallowed
from .watch import Watch

LOOKS = (16, 32, 48)  # updates of one optimizer
LAST = LOOKS[-1]
EVERY = 500  # updates, after them
MOST_ZEROS = 100  # from the last look to this update, zeros are looked at in the first step whose values are watched


class Learning:
    def __init__(self, attachment):
        self._attachment = attachment
        self._watches = {}  # id of an optimizer -> Watch
        self._said = set()  # reasons
        self._off = False
        self._here = None  # whether this rank looks, once that is asked
        self._gradients = NoGradient(attachment, self._say)
        self._swallowed = Swallowed(attachment, self._say)
        self.averages = Averages(attachment, self._say)
        self.recomputed = Recomputed(attachment, self._say)
        self._scalers = SkippingScalers(attachment, self._say)
        self._follows = False  # whether leaves of backward passes are gathered

    def _say(self, reason: str, label: str, text: str, tensor: str) -> None:
        if reason not in self._said:
            self._said.add(reason)
            self._attachment.findings.add(NOTHING_LEARNED, label, text, tensor)

    def _safely(self, work, *args) -> None:
        if self._off or not self._attachment.started or self._attachment.paused or not self._looks_here():
            return
        try:
            work(*args)
        except Exception as error:  # noqa: BLE001 (a training must not end because of the probe)
            self._off = True
            say(f"what is learned is no longer looked at: {type(error).__name__}: {' '.join(str(error).split())[:200]}")

    def _looks_here(self) -> bool:
        """Whether this is the rank that looks: one says it. First asked when the first look begins: then ranks have their numbers."""
        if self._here is None:
            self._here = place_in_group()[0] == 0
        return self._here

    def backward_begins(self, roots) -> None:
        self._gradients.backwards += 1
        for watch in [watch for watch in self._watches.values() if watch.used]:
            self._safely(not_cleared.backward_begins, self._attachment, watch)
        if self._follows:
            self._safely(lambda: self._gradients.leaves.update(map(id, leaves_below(roots))))

    def scaled_step(self, scaler, made: bool) -> None:
        """A loss scaler has let an update pass, or skipped it."""
        self._safely(self._scalers.stepped, scaler, made)

    def step_ends(self, program) -> None:
        """Another step is about to begin."""
        if self.averages.waits:
            self._safely(self.averages.step_ends, program)

    def before_update(self, program, optimizer) -> None:
        """Gradients are there, and nothing of the update has begun."""
        self._safely(self._before, program, optimizer)

    def _before(self, program, optimizer) -> None:
        watch = self._watches.get(id(optimizer))
        if watch is None or (watch.made < LAST or self._due(watch.made + 1)) and not watch.is_of(optimizer):
            watch = self._watches[id(optimizer)] = self._new(optimizer)
        watch.made += 1
        made = watch.made
        if made > MOST_ZEROS and not self._due(made):
            return
        if torch.compiler.is_compiling() or elsewhere():
            return
        if watch.without and made <= LAST:
            watch.note_gradients(parameters_of(optimizer))
            self._follows = self._follows or (bool(watch.without) and made == LAST - 2)
        if not_cleared.UPDATES[0] - 1 <= made <= not_cleared.UPDATES[-1]:
            not_cleared.look(self._attachment, watch, program, self._say)
        if self._due(made):
            self._look(program, watch, optimizer)
        if LAST <= made <= MOST_ZEROS and watch.zeros:
            watch.zeros = None if self._gradients.look_at_zeros(watch, program) else watch.zeros

    @staticmethod
    def _due(made: int) -> bool:
        return made in LOOKS or (made > LAST and made % EVERY == LAST)

    def _of_all(self) -> list:
        return [watch for watch in self._watches.values() if watch.optimizer() is not None]

    def _new(self, optimizer) -> Watch:
        self._watches = {key: watch for key, watch in self._watches.items() if watch.optimizer() is not None}
        return Watch(self._attachment.ops, optimizer)

    def _look(self, program, watch, optimizer) -> None:
        parameters = parameters_of(optimizer)
        if self.recomputed.compares:
            self.recomputed.judge()
        if watch.made <= LAST:
            watch.look_at_zeros(parameters)
        if watch.made == LOOKS[0]:
            watch.keep_those_without()
        if watch.made == LAST and watch.without:
            self._gradients.look_at_missing(watch, self._of_all(), program)
        if watch.made in LOOKS[1:] and "outside" not in self._said:
            self._gradients.look_outside(program)
        if watch.made >= LAST:
            self._swallowed.before_update(watch, program)
            underflow.look(self._attachment, watch, program, self._say)
        watch.rates = rates_of(optimizer)

    def after_update(self, optimizer) -> None:
        watch = self._watches.get(id(optimizer))
        if watch is None:
            return
        if watch.unmoved:
            self._safely(self._swallowed.after_update, watch)
        if self._due(watch.made + 1):
            self._safely(self.recomputed.begin)
        if self._due(watch.made):
            self.averages.update_made(watch.made, first=watch.made <= LAST)
        if self._follows:
            self._gradients.leaves.clear()
            self._follows = any(other.without and other.made < LAST for other in self._of_all())
