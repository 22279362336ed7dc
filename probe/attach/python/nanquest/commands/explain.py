"""`nanquest run --explain`: a background process that replays each incident as soon as its file is complete, one after the other with the
lowest priority, and prints the result in three lines.

The launcher starts it and keeps its standard input open until the training ends. Then the remaining incidents are explained, and the process
ends. Files get their final name when they are complete.
"""

from __future__ import annotations

import glob
import os
import select
import signal
import subprocess
import sys

from ..base import programs
from ..base.run_directory import shorter
from ..base.say import say

LOOK_EVERY = 0.5  # seconds
PATIENCE = 15 * 60  # seconds for one incident


class Explainer:
    """The explaining process, as the launcher holds it."""

    def __init__(self, run_dir: str):
        programs.find("nanquest-replay")
        # A session of its own, so that keys typed at the terminal reach only the training.
        self._process = subprocess.Popen(
            [sys.executable, "-m", "nanquest.commands.explain", os.path.abspath(run_dir)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )

    def finish(self) -> None:
        """Called after the training: waits until everything is explained; Ctrl-C ends the wait."""
        self._process.stdin.close()
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # output held back while the command ran
            self._process.wait()
        except KeyboardInterrupt:
            self._process.terminate()
            say("the remaining incidents are not explained; use nanquest replay FILE")


def incidents(run_dir: str) -> list:
    """Paths of the snapshots of a run, including those of its processes and of restarts."""
    found = []
    for below in ("", "process-*", "restart-*", os.path.join("restart-*", "process-*")):
        folder = os.path.join(glob.escape(run_dir), below)
        found += glob.glob(os.path.join(folder, "incidents", "step-*.h5"))
    return sorted(path for path in found if not path.endswith(".replay.h5"))


def explain(path: str) -> None:
    """Prints what nanquest-replay found."""
    try:
        done = subprocess.run(
            [*programs.command("nanquest-replay"), "--quiet", "--brief", path],
            text=True,
            timeout=PATIENCE,
            stdin=subprocess.DEVNULL,
            capture_output=True,
        )
        lines = (done.stdout if done.returncode in (0, 1) else done.stderr).strip().splitlines()
    except (OSError, subprocess.TimeoutExpired, programs.Missing) as problem:
        lines = [f"{shorter(path)} could not be explained: {problem}"]
    for line in lines:
        say(line)


def main(run_dir: str) -> None:
    os.nice(19)
    known = {path: os.path.getmtime(path) for path in incidents(run_dir)}  # left by an earlier run
    ended = False
    while True:
        new = [path for path in incidents(run_dir) if known.get(path) != os.path.getmtime(path)]
        for path in new:
            known[path] = os.path.getmtime(path)
            explain(path)
        if ended and not new:
            return
        # Nothing is written to it; its end is awaited.
        ended = ended or bool(select.select([sys.stdin], [], [], LOOK_EVERY)[0])


if __name__ == "__main__":
    main(sys.argv[1])
