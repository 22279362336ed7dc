"""One run of a rehearsal: the command under the probe, what its processes report of each step (hear/rehearsal_role.py), and how it ends."""

from __future__ import annotations

import ctypes
import dataclasses
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

from ..base.changes import Change
from ..base.settings import PLAN, REPORTS, Settings
from ..start import launcher

LOOK_EVERY = 0.1  # seconds
PATIENCE = 30.0  # time for a program to end after it was told to; then it is killed
PR_SET_PDEATHSIG = 1


@dataclasses.dataclass
class Trial:
    """The result of a run."""

    kind: str  #: "unchanged", "placebo" or "change"
    change: str = ""  #: in words
    first_step: int = 0
    losses: list = dataclasses.field(default_factory=list)  #: losses of all good steps from the first on; None for a step without one
    failed_step: int | None = None
    failure: str = ""
    ended_itself: bool = False
    not_tried: str = ""  #: why it could not be made
    # Not part of the file:
    made: bool = False  #: a step was begun
    code: int = 0  #: the command's exit code
    crashed: bool = False  #: it failed by that code, the probe saw nothing
    last_line: str = ""  #: the end of its output
    low: bool = False  #: the run computes in a 16-bit format

    @property
    def end(self) -> int:
        """One after the last good step."""
        return self.first_step + len(self.losses)

    def to_dict(self) -> dict:
        found = dataclasses.asdict(self)
        return {
            key: found[key] for key in ("kind", "change", "first_step", "losses", "failed_step", "failure", "ended_itself", "not_tried")
        }


class _Process:
    """Reads the report of one process."""

    def __init__(self, path: str):
        self.rank = int(os.path.basename(path)[1:].split(".")[0])
        self.facts, self.losses = {}, {}
        with open(path, encoding="utf-8") as file:
            for line in file:
                if not line.endswith("\n"):
                    break  # it is still being written
                told = json.loads(line)
                if "step" in told:
                    self.losses[told["step"]] = told["loss"]
                for key, value in told.items():
                    self.facts.setdefault(key, value)

    @property
    def is_over(self) -> bool:
        return any(key in self.facts for key in ("failed", "reached", "refused"))


class Rehearser:
    """Runs one command repeatedly."""

    def __init__(self, command: list, told):
        self._command = command
        self._told = told  # called with (step, loss) from time to time
        self._folder = tempfile.mkdtemp(prefix="nanquest-rehearse-")
        self._process = None
        self._count = 0
        self.level = "guard"

    def close(self) -> None:
        """Ends what is running, and removes temporary files."""
        self._end(signal.SIGINT)
        shutil.rmtree(self._folder, ignore_errors=True)

    def run(self, trial: Trial, until: int, first_step: int | None, change: Change | None = None, placebo: int | None = None) -> Trial:
        """Makes the run up to and including step `until`; fills `trial`."""
        self._count += 1
        here = os.path.join(self._folder, str(self._count))
        reports, log = os.path.join(here, "reports"), os.path.join(here, "output")
        os.makedirs(reports)
        settings = Settings(
            run_dir=os.path.join(here, "run"),
            level=self.level,
            on_forecast="off",
            on_spike="off",
            loggers="off",
            max_incidents=0,
            keep_steps=0,
            skip_limit=1_000_000,
        )
        environment = dict(os.environ, **launcher.environment_of(settings))
        environment[PLAN] = json.dumps(
            {"reports": reports, "until": until, "first_step": first_step, "placebo": placebo, "change": (change or Change()).to_dict()}
        )
        environment.pop(REPORTS, None)
        with open(log, "wb") as output:
            self._process = subprocess.Popen(
                self._command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_die_with_us,
            )
        processes = self._follow(reports)
        trial.code = self._process.returncode
        trial.last_line = _last_line(log)
        _fill(trial, processes)
        shutil.rmtree(here, ignore_errors=True)
        return trial

    def _follow(self, reports: str) -> list:
        deadline = None
        while True:
            ended = self._process.poll() is not None
            processes = [_Process(os.path.join(reports, name)) for name in sorted(os.listdir(reports))]
            if ended:
                self._end(signal.SIGTERM)  # files that it may have left
                return processes
            if (first := _first_rank(processes)) is not None and first.losses:
                self._told(*next(reversed(first.losses.items())))
            if any(process.is_over for process in processes):
                deadline = deadline or time.monotonic() + PATIENCE
                if time.monotonic() > deadline:
                    self._end(signal.SIGTERM)
            time.sleep(LOOK_EVERY)

    def _end(self, number: int) -> None:
        """Ends the command and everything it has started."""
        if self._process is None:
            return
        if self._process.poll() is None:
            self._signal(number)
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                pass
        self._signal(signal.SIGKILL)
        self._process.wait()

    def _signal(self, number: int) -> None:
        try:
            os.killpg(self._process.pid, number)
        except (ProcessLookupError, PermissionError):
            pass


def _die_with_us() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _first_rank(processes: list):
    """If several processes are rank 0, the one with the most steps."""
    return max((each for each in processes if each.rank == 0), key=lambda each: len(each.losses), default=None)


def _last_line(log: str) -> str:
    """The last line that the command printed, apart from the probe's own."""
    with open(log, "rb") as file:
        file.seek(max(0, os.path.getsize(log) - 8192))
        lines = file.read().decode(errors="replace").splitlines()
    told = [" ".join(line.split()) for line in lines if line.strip() and not line.startswith("nanquest: ")]
    return told[-1][:200] if told else ""


def _fill(trial: Trial, processes: list) -> None:
    refused = [each.facts["refused"] for each in processes if "refused" in each.facts]
    first = _first_rank(processes)
    if first is None or "first_step" not in first.facts:
        trial.not_tried = refused[0] if refused else ""
        return
    trial.made, trial.low = True, bool(first.facts.get("low"))
    trial.first_step = first.facts["first_step"]
    failed = min((each for each in processes if "failed" in each.facts), key=lambda each: (each.facts["failed"], each.rank), default=None)
    last = max(first.losses, default=trial.first_step - 1)
    if failed is not None:
        trial.failed_step = failed.facts["failed"]
        rank = f"rank {failed.rank}: " if failed.rank else ""
        text = failed.facts["failure"]
        trial.failure = rank + text.removeprefix(f"step {trial.failed_step}: ")
        last = min(last, trial.failed_step - 1)
    trial.losses = [first.losses.get(step) for step in range(trial.first_step, last + 1)]
    if "placebo" in first.facts:
        trial.change = f"{first.facts['placebo']}, {trial.change}"
    if refused and failed is None:
        trial.not_tried = refused[0]
    elif failed is None and "reached" not in first.facts:
        if trial.code:
            trial.failed_step, trial.crashed = trial.end, True
            trial.failure = f"the program ended with code {trial.code}: {trial.last_line}"
        else:
            trial.ended_itself = True
