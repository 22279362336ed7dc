"""`nanquest run --explain`: a process beside the training that replays each incident and prints the result in three lines."""

from __future__ import annotations

import os
import subprocess
import sys

from ..base import programs
from ..base.run_directory import shorter, snapshots
from ..base.say import say
from . import beside


def start(run_dir: str) -> beside.Beside:
    """programs.Missing if there is no nanquest-replay."""
    return beside.Beside("nanquest.commands.explain", os.path.abspath(run_dir))


def incidents(run_dir: str) -> list:
    """Paths of the snapshots of a run."""
    return snapshots(run_dir, "incidents")


def explain(path: str) -> None:
    """Prints what nanquest-replay found."""
    try:
        done = beside.replayed("--quiet", "--brief", path)
        lines = (done.stdout if done.returncode in (0, 1) else done.stderr).strip().splitlines()
    except (OSError, subprocess.TimeoutExpired, programs.Missing) as problem:
        lines = [f"{shorter(path)} could not be explained: {problem}"]
    for line in lines:
        say(line)


def main(run_dir: str, since: str) -> None:
    beside.each_new(lambda: incidents(run_dir), lambda new: [explain(path) for path in new], since)


if __name__ == "__main__":
    main(*sys.argv[1:])
