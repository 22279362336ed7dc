"""What `nanquest rehearse --set` may change in a program, as text and as data. Imports nothing heavy.

The syntax, one for all programs that have --set, is read by nanquest-replay; what the keys mean in a program is said here.
"""

from __future__ import annotations

import dataclasses
import json
import math
import subprocess

from . import programs

GROUPS = ("lr", "weight_decay", "momentum", "beta1", "beta2", "eps")  # settings of an optimizer's parameter groups
KNOWN = "lr, weight_decay, momentum, beta1, beta2, eps (=VALUE or =*FACTOR), warmup=STEPS, clip=NORM, precision=fp32, skip=STEP"


@dataclasses.dataclass
class Change:
    """One --set: everything in it at once."""

    text: str = ""  #: as typed; "" changes nothing
    groups: dict = dataclasses.field(default_factory=dict)  #: name -> ["*" or "=", number]
    warmup: int = 0  #: steps over which the rate grows to what it would be
    clip: float = 0.0  #: norm of an optimizer's gradients at most; 0: as they are
    fp32: bool = False
    skip: tuple = ()  #: steps whose update is left out

    def to_dict(self) -> dict:
        return dataclasses.asdict(self)


def _number(name: str, part: dict, strictly: bool = False) -> float:
    value = math.nan if part["number"] is None else part["number"]
    if not (value > 0 if strictly else value >= 0):
        number = part["value"].removeprefix("*" if part["factor"] else "")
        raise ValueError(f"--set {name}={part['value']}: {number!r} is not a number {'above 0' if strictly else 'of at least 0'}")
    return value


def _whole(name: str, text: str, least: int) -> int:
    if not text.isdigit() or int(text) < least:
        raise ValueError(f"--set {name}={text}: {text!r} is not a whole number of at least {least}")
    return int(text)


def _parts_of(texts: tuple) -> list:
    """For each text its settings, as nanquest-replay reads them: {"key", "value", "factor", "number"}."""
    done = subprocess.run([*programs.command("nanquest-replay"), "settings", "--", *texts], text=True, capture_output=True, check=False)
    if done.returncode:
        line = (done.stderr.strip().splitlines() or [f"nanquest-replay ended with code {done.returncode}"])[-1]
        raise ValueError(line.removeprefix("nanquest-replay: "))
    return json.loads(done.stdout)


def parse(*texts: str) -> list:
    """The Changes that texts such as "lr=*0.5,warmup=200" mean; ValueError for anything else. programs.Missing if there is no
    nanquest-replay, which reads them."""
    return [_change(text, parts) for text, parts in zip(texts, _parts_of(texts))] if texts else []


def _change(text: str, parts: list) -> Change:
    change, seen = Change(text), set()
    for part in parts:
        name, value = part["key"].replace("-", "_"), part["value"]
        if name not in (*GROUPS, "warmup", "clip", "precision", "skip"):
            raise ValueError(f"--set {text}: {f'{name}={value}'!r} is nothing that can be changed; known are {KNOWN}")
        if name in seen:
            raise ValueError(f"--set {text}: {name} is there twice; give each in a --set of its own")
        seen.add(name)
        if part["factor"] and name not in GROUPS:
            raise ValueError(f"--set {name}={value}: only {', '.join(GROUPS)} can be multiplied")
        if name in GROUPS:
            number = _number(name, part)
            if name.startswith("beta") and not part["factor"] and number >= 1:
                raise ValueError(f"--set {name}={value}: {value!r} is not a number below 1")
            change.groups[name] = ["*" if part["factor"] else "=", number]
        elif name == "warmup":
            change.warmup = _whole(name, value, 2)
        elif name == "clip":
            change.clip = _number(name, part, strictly=True)
        elif name == "skip":
            change.skip = tuple(_whole(name, step, 0) for step in value.split(","))
        elif value == "fp32":
            change.fp32 = True
        else:
            raise ValueError(f"--set precision={value}: only precision=fp32 can be tried")
    return change


def in_force(kind_and_number, value):
    """What a setting becomes: `value` times the number, or the number."""
    kind, number = kind_and_number
    return value * number if kind == "*" else number
