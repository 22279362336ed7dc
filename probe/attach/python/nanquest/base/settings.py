"""The settings of one run, with the kinds and defaults of settings_table.py, and how they reach programs. Imports nothing heavy."""

from __future__ import annotations

import dataclasses
import json
import os
import sys

from .muted import muted_places
from .settings_table import BY_NAME, SETTINGS
from .sizes import size_in

WITHHOLDS = ("skip", "fallback_fp32")  # values of on_incident that skip the optimizer's update
EXIT_ON_INCIDENT = 4  # exit code of a program that --on-incident, --on-forecast or --skip-limit ends
OFF = "NANQUEST"  # "off": nanquest does nothing, however it is attached
SWITCH = "NANQUEST_ATTACH"  # "1": attach when torch is imported
LIBRARY = "NANQUEST_ATTACH_LIBRARY"  # path of libnanquest_attach.so
RUN_ID = "NANQUEST_RUN_ID"  # the same in all processes of one run
PLAN = "NANQUEST_REHEARSAL"  # the plan of a rehearsal for this process (hear/rehearsal_role.py)
PROGRAM = "NANQUEST_PROGRAM"  # the settings for programs that are not Python, as JSON (start/native.py)
REPORTS = "NANQUEST_REPORTS"  # the folder in which processes tell `nanquest run` what they saw


def switched_off(environment=os.environ) -> bool:
    """Whether NANQUEST=off (bootstrap/sitecustomize.py asks the same, without importing this)."""
    return environment.get(OFF, "").strip().lower() in ("off", "0", "false", "no")


_Values = dataclasses.make_dataclass(
    "_Values",
    [
        *((setting.name, "object", setting.default) for setting in SETTINGS),
        ("config", dict, dataclasses.field(default_factory=dict)),  # settings of the program, copied into the files of the run
    ],
)


class Settings(_Values):
    def check(self) -> None:
        """ValueError that names what is wrong."""
        for setting in SETTINGS:
            value = getattr(self, setting.name)
            if problem := setting.kind.problem(value):
                raise ValueError(f"{setting.name} is {value!r}, but {problem}")
        for name in ("record_steps", "tape", "audit"):
            if getattr(self, name) and self.level == "guard":
                raise ValueError(f"{name} needs level trace or watch; level guard records nothing")

    def differences(self, asked: dict) -> list:
        """The settings that were asked for and differ here, like "level is 'trace', not 'watch'"."""
        found = []
        for name, value in asked.items():
            own = getattr(self, name)
            if name == "config":
                own = {key: own.get(key) for key in value}
            elif BY_NAME[name].kind.is_path and own and value:
                same = os.path.abspath(own) == os.path.abspath(value)
                own = value if same else own
            if own != value:
                found.append(f"{name} is {own!r}, not {value!r}")
        return found

    def to_environment(self) -> dict:
        """The variables that make child processes attach with these settings."""
        values = [(setting, getattr(self, setting.name)) for setting in SETTINGS]
        texts = {setting.variable: setting.kind.text(value) for setting, value in values if value not in ("", ())}
        return {SWITCH: "1", **texts}

    @staticmethod
    def from_environment(environment=os.environ) -> Settings:
        """ValueError for a variable that can't be read."""
        settings = Settings()
        for setting in SETTINGS:
            if text := environment.get(setting.variable):
                try:
                    setattr(settings, setting.name, setting.kind.read(text))
                except ValueError as problem:
                    raise ValueError(f"{setting.variable} is {text!r}, but {problem}") from None
        settings.check()
        return settings

    def to_json(self, run_dir: str, rank: int, world_size: int) -> str:
        """What the library's `start` reads."""
        options = {setting.name: getattr(self, setting.name) for setting in SETTINGS if setting.library}
        shown = [BY_NAME[name] for name in ("on_incident", "lr_backoff", "skip_limit", "max_disk", "quarantine")]
        written = {setting.flag[2:]: setting.kind.text(value) for setting in shown if (value := getattr(self, setting.name))}
        options.update(
            run_dir=run_dir,
            rank=rank,
            world_size=world_size,
            max_disk=size_in(self.max_disk) // max(world_size, 1) if self.max_disk else 0,
            watch_every=-1 if self.watch_every == "" else self.watch_every,
            tape_folder=os.fspath(self.tape_folder),
            skip_bad_updates=self.on_incident in WITHHOLDS,
            on_incident=self.on_incident,
            muted=muted_places(self.mute_file),
            config={
                "command": " ".join(getattr(sys, "orig_argv", sys.argv)),
                **written,
                **{str(name): str(value) for name, value in self.config.items()},
            },
        )
        return json.dumps(options)
