"""What `nanquest rehearse --set` may change in a program, as text and as data. Imports nothing heavy."""

from __future__ import annotations

import dataclasses
import math

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


def _number(name: str, text: str, factor: bool = False, strictly: bool = False) -> float:
    try:
        value = float(text.removeprefix("*") if factor else text)
    except ValueError:
        value = math.nan
    if not (value > 0 if strictly else value >= 0) or math.isinf(value):
        raise ValueError(
            f"--set {name}={text}: {text.removeprefix('*' if factor else '')!r} is not a number {'above 0' if strictly else 'of at least 0'}"
        )
    return value


def _whole(name: str, text: str, least: int) -> int:
    if not text.isdigit() or int(text) < least:
        raise ValueError(f"--set {name}={text}: {text!r} is not a whole number of at least {least}")
    return int(text)


def parse(text: str) -> Change:
    """The Change that "lr=*0.5,warmup=200" means; ValueError for anything else."""
    change, last = Change(text), ""
    for part in text.split(","):
        name, equals, value = (word.strip() for word in part.partition("="))
        if not equals and last == "skip":  # skip=3,4
            name, value = last, name
        elif not equals or name not in (*GROUPS, "warmup", "clip", "precision", "skip"):
            raise ValueError(f"--set {text}: {part.strip()!r} is nothing that can be changed; known are {KNOWN}")
        elif name == last or name in change.groups:
            raise ValueError(f"--set {text}: {name} is there twice; give each in a --set of its own")
        last = name
        if name in GROUPS:
            factor = value.startswith("*")
            number = _number(name, value, factor)
            if name.startswith("beta") and not factor and number >= 1:
                raise ValueError(f"--set {name}={value}: {value!r} is not a number below 1")
            change.groups[name] = ["*" if factor else "=", number]
        elif name == "warmup":
            change.warmup = _whole(name, value, 2)
        elif name == "clip":
            change.clip = _number(name, value, strictly=True)
        elif name == "skip":
            change.skip = (*change.skip, _whole(name, value, 0))
        elif value == "fp32":
            change.fp32 = True
        else:
            raise ValueError(f"--set precision={value}: only precision=fp32 can be tried")
    return change


def in_force(kind_and_number, value):
    """What a setting becomes: `value` times the number, or the number."""
    kind, number = kind_and_number
    return value * number if kind == "*" else number
