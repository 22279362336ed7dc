"""Makes the runs of a rehearsal, one after the other: unchanged, placebos, changes. Does not interpret them."""

from __future__ import annotations

import os
import shlex
import sys

from ..base import changes
from ..base.say import say
from .rehearsal_trials import Rehearser, Trial

FORMAT, VERSION = "nanquest.rehearsal", 1
DEFAULT = ("lr=*0.5", "lr=*0.1", "clip=1.0")
SEEDS = 12  # tries for each placebo to differ from the unchanged run


class Stop(Exception):
    """Nothing can be rehearsed; the text says why and what to do."""

    def __init__(self, line: str, code: int = 2):
        super().__init__(line)
        self.code = code


class _Progress:
    """Progress: one line that is rewritten on a terminal, otherwise one line per run."""

    def __init__(self):
        self._terminal = sys.stderr.isatty()
        self._what = ""

    def begins(self, what: str) -> None:
        self._what = what
        if self._terminal:
            print(f"\r\033[K{what} …", end="", file=sys.stderr, flush=True)

    def step(self, step: int, loss) -> None:
        if self._terminal:
            print(
                f"\r\033[K{self._what}: step {step}" + (f", loss {loss:.4g}" if loss is not None else ""),
                end="",
                file=sys.stderr,
                flush=True,
            )

    def clear(self) -> None:
        if self._terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)

    def ended(self, trial: Trial) -> None:
        self.clear()
        last = next((loss for loss in reversed(trial.losses) if loss is not None), None)
        end = (
            f"not tried: {trial.not_tried}"
            if trial.not_tried
            else f"step {trial.failed_step}: {trial.failure}"
            if trial.failed_step is not None
            else f"step {trial.end - 1}"
            + (f", loss {last:.4g}" if last is not None else "")
            + (", where the program ended itself" if trial.ended_itself else "")
        )
        say(f"{self._what}: {end}")


class Rehearsal:
    """The runs of one incident."""

    def __init__(self, options, facts: dict):
        self._options, self._facts = options, facts
        self._step = facts["step"]
        self._command = options.command
        self._progress = _Progress()
        self._recorded = dict(map(tuple, facts["losses"]))
        self._first = options.first_step
        self._as_recorded = None
        self.trials = []

    def run(self) -> dict:
        """Makes all runs. Returns the document of the file, without what judge adds."""
        rehearser = Rehearser(self._command, self._progress.step)
        try:
            self._all(rehearser)
        finally:
            self._progress.clear()
            rehearser.close()
        return {
            "format": FORMAT,
            "version": VERSION,
            "snapshot": os.path.basename(self._options.snapshot),
            "step": self._step,
            "rank": self._facts["rank"],
            "program": shlex.join(self._command),
            "began": "",
            "horizon": self._options.steps,
            "as_recorded": self._as_recorded,
            "growth": self._facts["growth"],
            "runs": [trial.to_dict() for trial in self.trials],
        }

    def _all(self, rehearser) -> None:
        until = self._step + self._options.steps
        unchanged = self._unchanged(rehearser, until)
        if unchanged.failed_step is None and unchanged.end > self._step:
            # Buffers, and values that reach neither loss nor gradients, are checked only at the weight checks.
            rehearser.level = "trace"
            self.trials.clear()
            unchanged = self._unchanged(rehearser, until)
        if unchanged.failed_step not in (self._step, self._step + 1):
            return
        # A change in the first update shows in the second step's loss.
        seed, wanted = 0, self._options.placebos if len(unchanged.losses) > 1 else 0
        while sum(trial.kind == "placebo" for trial in self.trials) < wanted and seed < wanted * SEEDS:
            seed += 1
            placebo = self._make(rehearser, f"placebo, seed {seed}", Trial("placebo", f"seed {seed}"), until, placebo=seed)
            if placebo.losses == unchanged.losses and placebo.failed_step == unchanged.failed_step:
                self.trials.pop()  # rounding removed the changed bit
            elif placebo.not_tried:
                break
        until = max(trial.failed_step or 0 for trial in self.trials) + self._options.steps
        for change in self._changes(unchanged):
            self._make(rehearser, change.text, Trial("change", change.text), until, change=change)

    def _unchanged(self, rehearser, until: int) -> Trial:
        at = "" if rehearser.level == "guard" else f", at level {rehearser.level}"
        unchanged = self._make(rehearser, f"the program as it is{at}", Trial("unchanged"), until)
        self._align(unchanged)
        self._check(unchanged)
        return unchanged

    def _make(self, rehearser, what: str, trial: Trial, until: int, **how) -> Trial:
        self._progress.begins(what)
        rehearser.run(trial, until, self._first, **how)
        self.trials.append(trial)
        self._progress.ended(trial)
        return trial

    def _changes(self, unchanged: Trial) -> list:
        texts = self._options.set or [*DEFAULT, *(["precision=fp32"] if unchanged.low else []), f"skip={self._step}"]
        return changes.parse(*texts)

    def _check(self, unchanged: Trial) -> None:
        """Stops if the command never reached the step of the incident."""
        said = f": {unchanged.last_line}" if unchanged.last_line else ""
        if unchanged.not_tried:
            raise Stop(unchanged.not_tried)
        if not unchanged.made:
            raise Stop(
                (
                    f"the command ended with code {unchanged.code} before it made a step"
                    if unchanged.code
                    else "the command made no step of a training"
                )
                + said
            )
        if unchanged.crashed and unchanged.failed_step < self._step:
            raise Stop(f"step {unchanged.failed_step}, long before step {self._step}: {unchanged.failure}")
        if unchanged.ended_itself and unchanged.end <= self._step:
            raise Stop(
                f"the program ended after step {unchanged.end - 1}, before step {self._step}; let it run longer, or resume it "
                "from a checkpoint before that step (--first-step N says with which step it begins)"
            )
        if not unchanged.losses:
            raise Stop(
                f"the command begins with step {self._step} itself, so nothing can be changed before it; resume from a checkpoint "
                "some 64 steps earlier, or from the beginning"
            )

    def _align(self, unchanged: Trial) -> None:
        """Finds the number of the first step: the one for which the losses equal the recorded ones, bit for bit."""
        if self._first is None and not self._agrees(unchanged, 0):
            first = min(self._recorded, default=0)
            shifts = [
                shift
                for shift in range(first - unchanged.end + 3, self._step - unchanged.first_step + 1)
                if self._agrees(unchanged, shift) >= 3
            ]
            if len(shifts) == 1:
                unchanged.first_step += shifts[0]
                if unchanged.failed_step is not None:
                    unchanged.failed_step += shifts[0]
                self._first = unchanged.first_step
                say(f"the command begins with step {self._first} of the recorded run: its losses are the same from there on")
        steps = range(unchanged.first_step, unchanged.end)
        self._as_recorded = bool(self._agrees(unchanged, 0)) if any(step in self._recorded for step in steps) else None
        if self._as_recorded is False:
            other = next(step for step, loss in zip(steps, unchanged.losses) if loss is not None and self._recorded.get(step, loss) != loss)
            say(
                f"step {other}: the loss is {unchanged.losses[other - steps.start]:.6g}, on record it is {self._recorded[other]:.6g}: does the "
                "program fix its seed, and is it given the same data?"
            )

    def _agrees(self, unchanged: Trial, shift: int) -> int:
        """How many losses are on record, if all of these equal them; otherwise 0."""
        pairs = [
            (loss, self._recorded[step])
            for step, loss in enumerate(unchanged.losses, unchanged.first_step + shift)
            if loss is not None and step in self._recorded
        ]
        return len(pairs) if all(loss == recorded for loss, recorded in pairs) else 0
