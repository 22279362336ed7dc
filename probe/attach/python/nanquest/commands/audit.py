"""`nanquest run --audit N`: a process beside the training that runs every N-th step again, on a CPU, and compares all outputs bit for bit.

A step whose outputs are the same leaves no file. One that differs stays in RUN_DIR/recordings, with the answer as JSON beside it.
"""

from __future__ import annotations

import collections
import json
import os
import subprocess
import sys

from ..base import programs
from ..base.run_directory import rank_of, shorter, snapshots, step_of
from ..base.say import say
from . import beside

WAITING = 4  # files; the oldest beyond these are not looked at
ANSWER = ".audit.json"  # beside the file
SAME, HARDWARE, UNKNOWN = "same", "HARDWARE", "UNKNOWN"


def start(run_dir: str, every: int, kept: tuple) -> beside.Beside:
    """`kept`: steps that --record-steps asks for; their files stay. programs.Missing if there is no nanquest-replay."""
    return beside.Beside("nanquest.commands.audit", os.path.abspath(run_dir), str(every), ",".join(map(str, kept)))


def findings(run_dir: str) -> list:
    """Rows of what audits found wrong, for `nanquest explain`."""
    rows = []
    for path in snapshots(run_dir, "recordings"):
        try:
            with open(os.path.splitext(path)[0] + ANSWER, encoding="utf-8") as file:
                found = json.load(file)
            if found["answer"] == HARDWARE:
                text = found["text"].partition(f"{HARDWARE}: ")[2]
                rows.append({"step": found["step"], "kind": "audit", "label": HARDWARE, "file": path, "text": text})
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return rows


class Auditor:
    def __init__(self, run_dir: str, every: int, kept: set):
        self._run_dir, self._every, self._kept = run_dir, every, kept
        self._answers = {SAME: 0, HARDWARE: 0, UNKNOWN: 0}
        self._left_out = 0
        self._ranks = collections.Counter()  # steps of each that were looked at

    def files(self) -> list:
        found = snapshots(self._run_dir, "recordings")
        return [path for path in found if (step := step_of(path)) > 0 and step % self._every == 0]

    def work(self, new: list) -> None:
        """Audits the newest of them; a step takes longer to run again than the training takes for it. Of a step those ranks come first of
        which the fewest were looked at."""
        new = sorted(new, key=lambda path: (step_of(path), -self._ranks[rank_of(path)]))
        for path in new[:-WAITING]:
            self._left_out += 1
            self._remove(path)
        for path in new[-WAITING:]:
            self._ranks[rank_of(path)] += 1
            self._audit(path)

    def _audit(self, path: str) -> None:
        try:
            done = beside.replayed("audit", "--json", "--quiet", path)
            if done.returncode not in (0, 1):
                raise ValueError((done.stderr.strip().splitlines() or ["nanquest-replay failed"])[-1])
            found = json.loads(done.stdout)
            answer, text = found["answer"], found["text"]
        except (OSError, subprocess.TimeoutExpired, programs.Missing, ValueError, KeyError) as problem:
            found, answer, text = None, UNKNOWN, f"step {step_of(path)}: UNKNOWN: {problem}"
        self._answers[answer] += 1
        if answer == SAME or (answer == UNKNOWN and self._answers[UNKNOWN] > 1):
            return self._remove(path)
        say(f"audit of {text} ({shorter(path)})")
        if found:
            with open(os.path.splitext(path)[0] + ANSWER, "w", encoding="utf-8") as file:
                json.dump(found, file, indent=2)
        return None

    def _remove(self, path: str) -> None:
        if step_of(path) not in self._kept:
            os.unlink(path)

    def tell(self) -> None:
        looked = sum(self._answers.values())
        if not looked and not self._left_out:
            return
        of_ranks = f" of {len(self._ranks)} ranks" if len(self._ranks) > 1 else ""
        parts = [f"{self._answers[SAME]} of {looked} steps{of_ranks} came back bit for bit"]
        parts += [f"{self._answers[answer]} {answer}" for answer in (HARDWARE, UNKNOWN) if self._answers[answer]]
        parts += [f"{self._left_out} not looked at, because running a step again takes longer than the training"] if self._left_out else []
        say("audit: " + "; ".join(parts))


def main(run_dir: str, every: str, kept: str, since: str) -> None:
    auditor = Auditor(run_dir, int(every), {int(step) for step in kept.split(",") if step})
    beside.each_new(auditor.files, auditor.work, since)
    auditor.tell()


if __name__ == "__main__":
    main(*sys.argv[1:])
