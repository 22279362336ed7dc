"""A process beside the training, with the lowest priority, that works through the files of the run as they are completed.

The launcher starts it and keeps its standard input open until the training ends. Then it works through the remaining files, and ends. Files
get their final name when they are complete.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time

from ..base import programs
from ..base.say import say

LOOK_EVERY = 0.5  # seconds
PATIENCE = 15 * 60  # seconds for one file
CLOCK = 0.1  # seconds that a file's time may be behind


class Beside:
    """The process, as the launcher holds it."""

    def __init__(self, module: str, *words: str):
        """Starts `module` with these words and the time, by which it knows files that were left by an earlier run."""
        programs.find("nanquest-replay")
        # A session of its own, so that keys typed at the terminal reach only the training.
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *words, repr(time.time())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )

    def finish(self, unfinished: str) -> None:
        """Called after the training: waits until all is done; Ctrl-C ends the wait, and `unfinished` is printed."""
        self._process.stdin.close()
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # output held back while the command ran
            self._process.wait()
        except KeyboardInterrupt:
            self._process.terminate()
            say(unfinished)


def replayed(*words: str) -> subprocess.CompletedProcess:
    """nanquest-replay with these arguments. Throws OSError, subprocess.TimeoutExpired, programs.Missing."""
    return subprocess.run(
        [*programs.command("nanquest-replay"), *words], text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL, capture_output=True
    )


def each_new(files, work, since: str) -> None:
    """Calls `work` with those of `files()` that are newer than `since`, each once, until the training has ended."""
    os.nice(19)
    known = {path: written for path in files() if (written := os.path.getmtime(path)) < float(since) - CLOCK}
    ended = False
    while True:
        new = [path for path in files() if known.get(path) != os.path.getmtime(path)]
        known.update((path, os.path.getmtime(path)) for path in new)
        if new:
            work(new)
        if ended and not new:
            return
        # Nothing is written to it; its end is awaited.
        ended = ended or bool(select.select([sys.stdin], [], [], LOOK_EVERY)[0])
