"""What the launcher, the environment and `nanquest.attach` agree on. Imports nothing heavy."""

from __future__ import annotations

import dataclasses
import json
import os
import sys

from .muted import muted_places
from .sizes import size_in

LEVELS = ("guard", "trace", "watch")
FORECASTS = ("say", "stop", "off")
LOGGERS = ("on", "off")
FROZEN_WEIGHTS = ("reference", "embed")
ACTIONS = ("continue", "skip", "fallback_fp32", "stop")
WITHHOLDS = ("skip", "fallback_fp32")  # of these, those that keep the optimizer from writing
COUNTS = (
    "watch_every",
    "watch_first",
    "watch_after",
    "keep_steps",
    "keep_percent",
    "keep_memory_percent",
    "max_incidents",
    "few_files_from",
    "tape",
    "compare_replicas",
)
EXIT_ON_INCIDENT = 4  # of a program that --on-incident, --on-forecast or --skip-limit ends
TAPE = 64  # steps of a tape that is asked for without a number
OFF = "NANQUEST"  # "off": nothing of nanquest does anything, however it is attached
SWITCH = "NANQUEST_ATTACH"  # "1": attach when torch is imported
LIBRARY = "NANQUEST_ATTACH_LIBRARY"  # path of libnanquest_attach.so
RUN_ID = "NANQUEST_RUN_ID"  # the same in all processes of one run
PLAN = "NANQUEST_REHEARSAL"  # what a process of a rehearsal has to do (hear/rehearsal_role.py)
PROGRAM = "NANQUEST_PROGRAM"  # the settings for programs that are not Python, as JSON (start/native.py)
REPORTS = "NANQUEST_REPORTS"  # the folder in which processes tell `nanquest run` what they saw


def switched_off(environment=os.environ) -> bool:
    """Whether NANQUEST=off (bootstrap/sitecustomize.py asks the same, without importing this)."""
    return environment.get(OFF, "").strip().lower() in ("off", "0", "false", "no")


def variable(field: str) -> str:
    """The environment variable for a field of Settings."""
    return "NANQUEST_" + field.upper()


def step_numbers(text: str) -> tuple:
    """(0, 5) out of "0,5"; ValueError for anything else."""
    return tuple(int(number) for number in text.split(",") if number.strip())


@dataclasses.dataclass
class Settings:
    run_dir: str = "nanquest-run"
    level: str = "trace"
    watch_every: int = 50
    watch_first: int = 3
    watch_after: int = 10
    keep_steps: int = 2
    keep_percent: int = 1
    keep_memory_percent: int = 25
    max_incidents: int = 16
    few_files_from: int = 8
    tape: int = 0
    compare_replicas: int = 50
    tape_folder: str = ""
    on_incident: str = "continue"
    on_forecast: str = "say"
    lr_backoff: float = 0.5
    skip_limit: int = 5
    record_steps: tuple = ()
    quarantine: str = ""
    max_disk: str = ""
    mute_file: str = ".nanquest-mute.json"
    loggers: str = "on"
    frozen_weights: str = "reference"
    config: dict = dataclasses.field(default_factory=dict)

    def check(self) -> None:
        """ValueError that names what is wrong."""
        for name, value, known in (
            ("level", self.level, LEVELS),
            ("on_incident", self.on_incident, ACTIONS),
            ("on_forecast", self.on_forecast, FORECASTS),
            ("loggers", self.loggers, LOGGERS),
            ("frozen_weights", self.frozen_weights, FROZEN_WEIGHTS),
        ):
            if value not in known:
                raise ValueError(f"{name} is {value!r}, but must be {', '.join(known[:-1])} or {known[-1]}")
        for name in COUNTS:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise ValueError(f"{name} is {value!r}, but must be a whole number of at least 0")
        if isinstance(self.skip_limit, bool) or not isinstance(self.skip_limit, int) or self.skip_limit < 1:
            raise ValueError(f"skip_limit is {self.skip_limit!r}, but must be a whole number of at least 1")
        if isinstance(self.lr_backoff, bool) or not isinstance(self.lr_backoff, (int, float)) or not 0 < self.lr_backoff <= 1:
            raise ValueError(f"lr_backoff is {self.lr_backoff!r}, but must be above 0 and at most 1")
        if any(isinstance(step, bool) or not isinstance(step, int) or step < 0 for step in self.record_steps):
            raise ValueError(f"record_steps is {self.record_steps!r}, but must be step numbers, counted from 0")
        if self.record_steps and self.level == "guard":
            raise ValueError("record_steps needs level trace or watch; level guard records nothing")
        if self.tape and self.level == "guard":
            raise ValueError("tape needs level trace or watch; level guard records nothing")
        if self.tape_folder and not (os.path.isdir(self.tape_folder) and os.access(self.tape_folder, os.W_OK | os.X_OK)):
            raise ValueError(f"tape_folder is {self.tape_folder!r}, but must be a directory in which files can be made")
        if self.max_disk:
            size_in(self.max_disk)
        if why := self._why_no_quarantine():
            raise ValueError(f"quarantine is {self.quarantine!r}, but {why}")
        if not isinstance(self.run_dir, (str, os.PathLike)) or not os.fspath(self.run_dir):
            raise ValueError("run_dir is empty; give the directory for the files of this run")

    def _why_no_quarantine(self) -> str:
        if not isinstance(self.quarantine, (str, os.PathLike)):
            return "must be the path of a file"
        path = os.path.abspath(self.quarantine)
        if not self.quarantine or os.path.isfile(path):
            return "" if not self.quarantine or os.access(path, os.R_OK | os.W_OK) else "that file may not be read and written"
        if os.path.exists(path):
            return "that is no file"
        folder = os.path.dirname(path)
        return "" if os.path.isdir(folder) and os.access(folder, os.W_OK) else f"no file can be made in {folder}"

    def to_environment(self) -> dict:
        """The variables that make children attach with these settings."""
        names = {
            "NANQUEST_RUN_DIR": os.path.abspath(self.run_dir),
            "NANQUEST_LEVEL": self.level,
            "NANQUEST_ON_INCIDENT": self.on_incident,
            "NANQUEST_ON_FORECAST": self.on_forecast,
            "NANQUEST_LR_BACKOFF": str(self.lr_backoff),
            "NANQUEST_SKIP_LIMIT": str(self.skip_limit),
            "NANQUEST_LOGGERS": self.loggers,
            "NANQUEST_FROZEN_WEIGHTS": self.frozen_weights,
        }
        for field in COUNTS:
            names[variable(field)] = str(getattr(self, field))
        if self.quarantine:
            names["NANQUEST_QUARANTINE"] = os.path.abspath(self.quarantine)
        if self.tape_folder:
            names["NANQUEST_TAPE_FOLDER"] = os.path.abspath(self.tape_folder)
        names["NANQUEST_MUTE_FILE"] = os.path.abspath(self.mute_file)
        if self.max_disk:
            names["NANQUEST_MAX_DISK"] = str(self.max_disk)
        if self.record_steps:
            names["NANQUEST_RECORD_STEPS"] = ",".join(map(str, self.record_steps))
        return {SWITCH: "1", **names}

    @staticmethod
    def from_environment(environment=os.environ) -> Settings:
        """ValueError for a variable that can't be read."""
        settings = Settings()
        for field in dataclasses.fields(Settings):
            text = environment.get(variable(field.name))
            if text is None or field.name == "config":
                continue
            default = getattr(settings, field.name)
            try:
                if isinstance(default, tuple):
                    value = step_numbers(text)
                else:
                    value = type(default)(text)
            except ValueError:
                wanted = (
                    "step numbers like 0,5"
                    if isinstance(default, tuple)
                    else "a number"
                    if isinstance(default, float)
                    else "a whole number"
                )
                raise ValueError(f"{variable(field.name)} is {text!r}, but must be {wanted}") from None
            setattr(settings, field.name, value)
        settings.check()
        return settings

    def to_json(self, run_dir: str, rank: int, world_size: int) -> str:
        """What the library's `start` reads."""
        options = dataclasses.asdict(self)
        share = size_in(self.max_disk) // max(world_size, 1) if self.max_disk else 0
        options.update(
            max_disk=share,
            muted=muted_places(self.mute_file),
            mute_file=os.fspath(self.mute_file),
            tape_folder=os.fspath(self.tape_folder),
            quarantine=os.fspath(self.quarantine),
            run_dir=run_dir,
            rank=rank,
            world_size=world_size,
            skip_bad_updates=self.on_incident in WITHHOLDS,
            config={
                "command": " ".join(getattr(sys, "orig_argv", sys.argv)),
                "on-incident": self.on_incident,
                "lr-backoff": f"{self.lr_backoff:g}",
                "skip-limit": str(self.skip_limit),
                **({"max-disk": str(self.max_disk)} if self.max_disk else {}),
                **({"quarantine": os.path.abspath(self.quarantine)} if self.quarantine else {}),
                **{str(k): str(v) for k, v in self.config.items()},
            },
        )
        return json.dumps(options)
