"""The policy after a bad step: its update is skipped, and the run goes on in fp32, or without the batch, or ends."""

from __future__ import annotations

from ..base.rank import place_in_group
from ..base.say import say
from ..base.settings import WITHHOLDS
from ..ranks.skip_vote import Ranks
from .fp32_fallback import Fallback
from .undo import Undo

LINES = 3  # number of lines that report a skipped batch


class Policy:
    def __init__(self, program):
        self._attached = program.attached
        self._program = program
        self._settings = program.attached.settings
        self._rehearsal = program.attached.rehearsal
        withholds = self._settings.on_incident in WITHHOLDS or self._settings.on_spike == "skip"
        self.withholds = withholds or (self._rehearsal is not None and self._rehearsal.withholds)
        self.undo = Undo(program.attached)
        self._failed = ""  # why the fallback had to be taken back
        self._ranks = Ranks(program.attached.say_once)
        self._spike = False  # the current update is skipped for a spike
        self._bad_rank = -1  # the first rank that wants to skip the current update
        self._asked = False  # whether the fallback was checked for obstacles
        self.falls_back_after = None  # a bad step that the device left out: the fallback begins with the next step
        self._last_bad, self._in_a_row = -2, 0

    def agrees(self, told: dict) -> bool:
        """Whether to skip an update that the library would skip. Gradients summed by DistributedDataParallel are the same on all ranks;
        losses and buffers are not, and ranks that decide differently would wait for each other forever."""
        self._bad_rank = -1
        if told["gradients_bad"] or place_in_group()[1] == 1:
            return True
        self._attached.say_once(
            "this rank has a bad step with finite gradients; with several processes only the gradients decide whether an update is skipped"
        )
        return False

    def leaves_out(self, told) -> bool:
        """Whether to skip an update; `told` is the library's answer for it (None: it is fine). If gradients are not summed by
        DistributedDataParallel, all ranks skip it as soon as one of them has to."""
        self._bad_rank = -1
        self._spike = bool(told) and told["spiking"]
        if not self.withholds or self._program.parallel or place_in_group()[1] == 1:
            return bool(told) and self.agrees(told)
        self._bad_rank = self._ranks.first_of(bool(told))
        return self._bad_rank >= 0

    def asks_early(self, optimizers) -> None:
        """At the first update: prints the reason if this program can't fall back to fp32."""
        if self._asked or self._settings.on_incident != "fallback_fp32":
            return
        self._asked = True
        if why := Fallback(self._program, optimizers, self._settings.lr_backoff).why_not():
            self._refuse(why)

    def left_out(self, step: int, optimizers) -> None:
        """The update of this step was skipped."""
        self.undo.put_back()
        name, rank = self._attached.ops.spoiled_weight(), place_in_group()[0]
        together, self._bad_rank = self._bad_rank, -1
        spoiled = self._ranks.first_of(bool(name)) if together >= 0 else rank if name else -1
        if spoiled >= 0:
            name = name or f"a weight of rank {spoiled}"
            self._attached.end(f"stopped: {name} is not finite, and skipping updates cannot repair it")
        if spike := self._spike:
            self._spike = False
        why = ("spike" if spike else "policy skip") if together in (-1, rank) else f"it is bad on rank {together}"
        if self._settings.on_incident == "fallback_fp32" and not spike and not (why := self._falls_back(step, step, optimizers)):
            return
        self._skip(step, why)

    def _falls_back(self, bad: int, last: int, optimizers) -> str:
        """Begins the fallback because of the step `bad`, after the step `last`. Returns "" if it has begun, else why not."""
        if self._attached.fell_back is not None:
            return "the fp32 fallback was already taken"
        if why := self._failed or Fallback(self._program, optimizers, self._settings.lr_backoff).take():
            self._refuse(why)
            return why
        self._attached.fell_back = last
        line = f"step {bad}: its update is left out; from here on: fp32, learning rate times {self._settings.lr_backoff:g}"
        say(line)
        self._attached.loggers.fell_back(last, line)
        return ""

    def left_out_on_device(self, step: int, ended: bool = False) -> None:
        """The device left out the update of this step, which is over. `ended`: and so is the program. A fallback waits for the next step
        to begin: the running one may have computed some of its gradients, in the formats and with the loss scale of before."""
        if ended:
            self._attached.skipped += 1
            return
        if name := self._attached.ops.spoiled_weight():
            self._attached.end(f"stopped: {name} is not finite, and skipping updates cannot repair it")
        self._attached.say_once(
            "the updates of bad steps are left out on the device; random numbers, learning rate schedules and loss scale go on as if "
            "such a batch had counted (--gate now puts them back, and waits in each step)"
        )
        if self._settings.on_incident == "fallback_fp32" and self._attached.fell_back is None and self.falls_back_after is None:
            self.falls_back_after = step
            return
        self._skip(step, "policy skip")

    def step_begins(self) -> None:
        """No pass of the coming step has begun, and the updates of the one before are made."""
        bad, self.falls_back_after = self.falls_back_after, None
        if bad is not None and (why := self._falls_back(bad, self._attached.ops.step(), self._program.written.optimizers())):
            self._skip(bad, why)

    def ends(self) -> None:
        """The program ends: a fallback that did not begin was a skipped batch."""
        if self.falls_back_after is not None:
            self._attached.skipped += 1

    def fallback_failed(self, why: str) -> None:
        """The fallback was taken back and will not be tried again."""
        step, self._attached.fell_back = self._attached.fell_back, None
        self._failed = why
        if self._rehearsal is not None:
            self._rehearsal.refuse(f"precision=fp32 is not possible here: {why}")
        self._refuse(why)
        self._skip(step, why)

    def _refuse(self, why: str) -> None:
        self._attached.say_once(f"fallback_fp32 becomes skip: {why}")

    def _skip(self, step: int, why: str) -> None:
        if step != self._last_bad:  # otherwise another optimizer of the same step
            self._attached.skipped += 1
            self._in_a_row = self._in_a_row + 1 if step == self._last_bad + 1 else 1
            self._attached.loggers.skipped(step, self._attached.skipped)
        self._last_bad = step
        if self._attached.skipped <= LINES:
            say(f"step {step}: batch skipped: {why}")
        elif self._attached.skipped == LINES + 1:
            say("further skipped batches are counted in the manifest")
        if self._in_a_row >= self._settings.skip_limit:
            self._attached.end(f"stopped: {self._in_a_row} batches skipped in a row")
