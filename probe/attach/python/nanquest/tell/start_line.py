"""The line that `nanquest run` prints before the program starts."""

from __future__ import annotations

from ..base.run_directory import shorter
from ..base.say import say

WHAT = {  # what a level does and costs; docs/evidence.md has the figures
    "guard": "checks loss and gradients (about 1 % of a CPU's time, more on a GPU)",
    "trace": "records every step (a few percent of a CPU's time, more on a GPU and for small models)",
    "watch": "checks every value (a quarter more time on a CPU, several times as much on a GPU)",
}


def _watched(settings) -> str:
    """How many steps of level trace are watched."""
    every, percent = settings.watch_every, settings.watch_percent
    if every == "" and percent:
        return f"checks all values of one in 50 to 5000, for {percent} % of the time"
    return f"checks all values of one in {every}" if every else "checks no more values after the first steps"


def say_start(settings) -> None:
    """One line on stderr: the level, what it costs, where files go, how to see more."""
    files = "no files" if settings.level == "guard" else f"files go to {shorter(settings.run_dir)}"
    what = WHAT[settings.level] + (f"; {_watched(settings)}" if settings.level == "trace" else "")
    say(f"level {settings.level}: {what}; {files}; nanquest run --help shows more")
