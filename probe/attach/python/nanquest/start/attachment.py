"""The probe in this process, at most one: how it starts, what it prints about the library's findings, how it ends."""

from __future__ import annotations

import atexit
import dataclasses
import json
import os
import sys
import threading
import time

from ..base import import_watch, library
from ..base.probe_state import probe
from ..base.rank import place_in_group
from ..base.run_directory import claim, refused, shorter
from ..base.say import say
from ..base.settings import EXIT_ON_INCIDENT, WITHHOLDS, Settings
from ..policy.quarantine import Quarantine
from ..tell import bad_indices, bad_variables, listeners, reports
from ..tell.findings import Findings
from ..tell.loggers import Loggers

EXIT_UNPROTECTED = 2
LINES = 3  # a model whose weights are NaN has an incident in every step
SECONDS_BETWEEN_NOTES = 1.0


def refuse_to_train() -> None:
    """Ends the process: --on-incident stop, and the probe is off."""
    say("stopped before the first step: --on-incident stop needs the probe")
    raise SystemExit(EXIT_UNPROTECTED)


class Attachment:
    """After `install` it waits. At the first training step it loads the library and begins to observe."""

    def __init__(self, settings: Settings, library_path: str, by_environment: bool):
        self.settings = settings
        self.asked = dataclasses.replace(settings, config=dict(settings.config))  # before the program changed it
        self.by_environment = by_environment  # attached by nanquest run, not by the program
        self.library_path = library_path
        self.handle = None  # the library, once it is loaded
        self.ops = None  # torch.ops.nanquest
        self.thread = None  # identity of the thread that trains, once it has begun
        self.off = False
        self.paused = False  # see pausing
        self.run_dir = os.path.abspath(settings.run_dir)
        self.samples = None  # ids given before the start
        self.named_samples = None  # ids that the program gave last
        self.drawing = None  # steps.drawn_batches.Drawing, if the samples of a step are followed
        self.quarantine = Quarantine(settings.quarantine) if settings.quarantine else None
        self.first_step = 0  # the step's number, if the program set it before the start
        self.said = self.said_spikes = 0  # incidents told on stderr; finite ones apart, so that they withhold no line of a bad step
        self.skipped = 0  # batches
        self.fell_back = None  # the last step before the run went on in fp32
        self.refused = ""  # the index that ended the program with an error
        self.outlook = ""  # how the program's state is when it ends
        self.apart = None  # the step in which replicas were first seen to differ
        self.rehearsal = None  # rehearsing.Role, if the process belongs to a rehearsal
        self.loggers = Loggers(self)
        self.findings = Findings(self)
        self.learning = None  # learn.learning.Learning, if what is learned is looked at
        self.loads = None  # files.loaded.Loads, if what the program reads back is looked at
        self.writes = None  # files.written.Writes, if what the program writes is looked at
        self.incident_files = {}  # step -> file, of the incidents that were told
        self._said_once = set()
        self._next_note = 0.0
        self._step_count = reports.StepCount()
        self._lock = threading.Lock()

    @property
    def started(self) -> bool:
        return self.thread is not None

    def start(self) -> bool:
        """Begins to observe the calling thread; True if this thread is now the observed one."""
        with self._lock:
            if not self.started and not self.off:
                self._start()
            return self.on_training_thread()

    def observes(self) -> bool:
        """Whether something is observed. Begins with the main thread, if it is the caller: a gradient taken on another shows no training."""
        return self.started or (threading.current_thread() is threading.main_thread() and self.start())

    def on_training_thread(self) -> bool:
        """Whether the caller is the observed thread: False before there is one."""
        return self.thread == threading.get_ident()

    def _start(self) -> None:
        import torch

        try:
            self.handle = library.load(self.library_path)
        except library.Unfit as unfit:
            self.give_up(str(unfit))
            self._end_unprotected()
            return
        self.ops = torch.ops.nanquest
        from ..pytorch import owners  # imports torch, which is here by now

        owners.answer_for(self.handle)
        try:
            self.run_dir = claim(self.run_dir)
            # A rehearsal decides by a step's loss before its update.
            settings = self.settings if self.rehearsal is None else dataclasses.replace(self.settings, gate="now")
            error = self.ops.start(settings.to_json(self.run_dir, *place_in_group()))
        except OSError as problem:
            error = f"{problem.filename or self.run_dir}: {problem.strerror}"
        if error:
            self.give_up(f"the probe is off: {refused(self.run_dir) or error}")
            self._end_unprotected()
            return
        self.thread = threading.get_ident()
        import_watch.settle()
        atexit.register(self.finish, None)
        multiprocessing = sys.modules.get("multiprocessing")
        if multiprocessing is not None and multiprocessing.parent_process() is not None:
            # Forked children of multiprocessing end without running atexit functions.
            multiprocessing.util.Finalize(None, self.finish, args=(None,), exitpriority=0)
        if self.samples:
            self.ops.samples(self.samples)
        if self.first_step:
            self.ops.set_step(self.first_step)
        if self.paused:
            self.ops.pause(True)
        self.note()

    def _end_unprotected(self) -> None:
        """A program that is to be stopped by its first incident does not train where none would be found."""
        if self.settings.on_incident == "stop":
            refuse_to_train()

    def note(self, ended: bool = False) -> bool:
        """Reports to the launcher. True if there is a launcher."""
        self._next_note = time.monotonic() + SECONDS_BETWEEN_NOTES
        return reports.note(**self.seen(), ended=ended)

    def seen(self) -> dict:
        return {
            "run_dir": self.run_dir,
            "steps": self.ops.steps_made(),
            "incidents": self.ops.incidents(),
            "incident_steps": sorted(self.incident_files),
            "spikes": self.ops.spikes(),
            "carried_on": self.ops.carried_on(),
            "repeated": self.ops.repeated(),
            "muted": self.ops.muted(),
            "skipped": self.skipped,
            "fell_back": self.fell_back,
            "apart": self.apart,
            "outlook": self.outlook,
            "refused": self.refused,
            "findings": self.findings.count,
        }

    def step_made(self) -> None:
        """A killed process cannot report, so its step count is written at each step, and everything else about once a second."""
        self.named_samples = None
        self.findings.flush()
        if self.writes is not None:
            self.writes.step_made()
        self._step_count.write(self.ops.steps_made())
        if time.monotonic() >= self._next_note:
            self.note()
            self.loggers.verdicts()

    def step_may_be_made(self) -> None:
        """A pass begins after one without an optimizer's step: the program updates its weights itself, or accumulates gradients."""
        if self.ops.steps_made() > self._step_count.last:
            self.step_made()

    def say_once(self, line: str) -> None:
        if line not in self._said_once:
            self._said_once.add(line)
            say(line)

    def give_up(self, line: str) -> None:
        self.off = True
        reports.note(off=line)
        if self.rehearsal is not None:
            self.rehearsal.lost(line)
        say(line)

    def heed(self, answer: str, of_batch: bool = True):
        """Prints what the library found, and ends the program if the settings say so. Returns the answer if the update is to be skipped.
        `of_batch`: the finding is about the passes of the step, not about its update."""
        if not answer:
            return None
        told = json.loads(answer)
        for earlier in told["earlier"]:  # steps whose check was read late
            self._heed(earlier, of_batch=True)
            self._left_out_on_device(earlier)
        return self._heed(told, of_batch)

    def _heed(self, told: dict, of_batch: bool):
        stop = (
            told["incident"]
            and told["stops"]
            and self.settings.on_incident == "stop"
            or told["forecast"]
            and self.settings.on_forecast == "stop"
            or told["spike"]
            and self.settings.on_spike == "stop"
        )
        self._tell(told, "; stopped" if stop else "")
        if self.rehearsal is not None:
            self.rehearsal.ends_if_bad()
        if of_batch and told["incident"] and told["stops"]:
            self._put_into_quarantine(self._step_of(told))
        if stop:
            why = "on a spike" if told["spike"] else "policy stop" if told["incident"] else "on a forecast"
            self.end(f"stopped: {why}", said=True)
        return told if told["skip"] else None

    def _left_out_on_device(self, told: dict, ended: bool = False) -> None:
        if self.settings.on_incident not in WITHHOLDS or probe.program is None:
            return
        if told["withheld"]:
            probe.program.updates.word.left_out(told["withheld"])
            probe.program.policy.left_out_on_device(told["step"], ended)
        elif told["incident"]:
            probe.program.policy.agrees(told)  # it says why not, where several processes decide together

    def _put_into_quarantine(self, step: int) -> None:
        if self.quarantine is None or self.ops.spoiled_weight():  # the batch did not cause it
            return
        batches, why_not = self.drawing.of_step(step)
        if not batches and self.named_samples:
            batches = [self.drawing.named(self.named_samples)]
        line = self.quarantine.add(step, batches, why_not, self.run_dir)
        if self.said <= LINES:
            say(line)

    def end(self, outcome: str, said: bool = False) -> None:
        """Ends the program on a non-finite step."""
        if not said:
            say(outcome)
        reports.note(stopped=True)
        self.finish(outcome, look_back=False)
        raise SystemExit(EXIT_ON_INCIDENT)

    def _step_of(self, told: dict) -> int:
        """The step that an answer is about: by default the active one."""
        return told["step"] or self.ops.step()

    def _tell(self, told: dict, end: str = "") -> None:
        if not told["summary"]:
            return
        if told["spike"]:
            self.said_spikes += told["incident"]
        else:
            self.said += told["incident"]
        if told["incident"]:
            self.incident_files[self._step_of(told)] = told["file"]
            listeners.tell(
                news := listeners.Incident(self._step_of(told), told["summary"], self.run_dir, told["file"], finite=told["spike"])
            )
            self.loggers.incident(news, self.said + self.said_spikes)
            if self.rehearsal is not None and told["stops"]:
                self.rehearsal.went_bad(self._step_of(told), told["summary"])
        if told["forecast"]:
            listeners.tell(listeners.Forecast(self._step_of(told), told["summary"], self.run_dir))
        if self.said <= LINES:
            self.note()
        number = self.said_spikes if told["spike"] else self.said
        if told["incident"] and number > LINES:
            if number == LINES + 1:
                say(
                    f"further {'spikes' if told['spike'] else 'incidents'} are listed in {shorter(os.path.join(self.run_dir, 'manifest.json'))}"
                )
            return
        file = told["file"]
        if self._is_only_for_an_audit(told):
            return
        say(told["summary"] + self._as_the_trainer_counts(told) + end + (f"; see it with: nanquest-replay {shorter(file)}" if file else ""))

    def _is_only_for_an_audit(self, told: dict) -> bool:
        """A recorded step that nobody asked for but --audit, and nothing else to say of it."""
        step = told["only_recorded"]
        audited = self.settings.audit > 0 and step >= 0 and step % self.settings.audit == 0
        return audited and bool(told["file"]) and step not in self.settings.record_steps

    def replicas_differ(self, step: int, ranks: list, name: str, line: str) -> None:
        """A weight differs between ranks that should have the same weights (ranks/replicas.py)."""
        line = f"step {step}: {line}"
        self.ops.replicas_differ(step, ranks, name, line)
        if self.apart is None:
            self.apart = step
            listeners.tell(listeners.Incident(step, line, self.run_dir, ""))
        self.note()
        say(line)

    def _as_the_trainer_counts(self, told: dict) -> str:
        """The Trainer's number of the running step, like " (the Trainer's step 17)"; "" if it equals the probe's. They differ after a
        resume."""
        step = self._step_of(told)
        ahead = self.loggers.ahead() if told["incident"] and step == self.ops.step() else 0
        return f" (the Trainer's step {step + ahead})" if ahead else ""

    def finish(self, outcome: str | None, look_back: bool = True) -> None:
        """Completes the files."""
        if not self.started or self.off:
            return
        if outcome is None:
            ended_by = getattr(sys, "last_type", None)
            outcome = f"ended by {ended_by.__name__}" if ended_by else "the program ended"
        self.loggers.verdicts()
        self.findings.flush()
        if look_back and (answer := self.ops.program_ends(reports.raised())):
            told = json.loads(answer)
            for each in (*told["earlier"], told):
                self._tell(each)
                self._left_out_on_device(each, ended=True)
        if probe.program is not None:
            probe.program.policy.ends()
        outcome += reports.what_was_done(self.skipped, self.fell_back)
        self.off = True
        if self.quarantine is not None and (line := self.quarantine.end()):
            say(line)
        self.outlook = self.ops.outlook()
        self.refused = bad_indices.when_it_raised() if look_back else ""
        seen, heard = self.seen(), self.note(ended=True)
        error = self.ops.stop(outcome)
        if error:
            say(f"the files are not complete: {error}")
        # If the error has to do with an incident, the incident says more about it.
        quiet = look_back and not seen["incidents"] and not seen["carried_on"]
        if quiet and not self.refused and (held := bad_variables.when_it_raised()):
            say(f"{reports.raised().rstrip(':')} ended the program outside a recorded step; {held}")
        if not heard and (seen["incidents"] or seen["muted"] or seen["apart"] is not None or self.refused):
            say(reports.outcome([{**seen, "ended": True}]))
