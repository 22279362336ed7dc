"""The quarantine: a file that lists the samples of incidents. A run with this file skips them.

One sample per line, "INDEX DATASET" as in "13 Rows[240]", where the data set is its class and its length; an index alone counts for
every data set. What follows a # is a comment. Delete a line to use its sample again.
"""

from __future__ import annotations

import os
import time

from ..base.run_directory import shorter
from ..base.say import say

HEAD = """# Samples that made a non-finite step, one a line: the index, and the data set as CLASS[LENGTH].
# `nanquest run --quarantine` leaves them out; delete a line to use its sample again.
"""


class Quarantine:
    def __init__(self, path: str):
        self.path = os.path.abspath(path)
        self.left_out = set()  # entries that were used
        self._lines = set()  # (index, data set or "")
        self._named = set()  # samples that this run has added
        for number, line in enumerate(self._read(), 1):
            words = line.partition("#")[0].split()
            if 1 <= len(words) <= 2:
                self._lines.add((words[0], words[1] if len(words) == 2 else ""))
            elif words:
                say(
                    f"quarantine {shorter(self.path)}: line {number} is not understood: write an index, or an index and a data set "
                    "like Rows[240]"
                )

    def _read(self) -> list:
        try:
            with open(self.path, encoding="utf-8", errors="replace") as file:
                return file.read().splitlines()
        except FileNotFoundError:
            return []

    def __len__(self) -> int:
        return len(self._lines)

    def left_of(self, dataset: str, index, name):
        """The indices of a batch, or a single index, without quarantined ones; None if nothing is left."""
        if not self._lines:
            return index
        if not isinstance(index, (list, tuple)):
            return None if self._holds(dataset, name(index)) else index
        kept = [each for each in index if not self._holds(dataset, name(each))]
        return index if len(kept) == len(index) else kept or None

    def _holds(self, dataset: str, index: str) -> bool:
        found = next((line for line in ((index, dataset), (index, "")) if line in self._lines), None)
        if found:
            self.left_out.add(found)
        return found is not None

    def why_not(self, datasets) -> str:
        """Why nothing can be skipped in a program that draws from these data sets; "" if it can."""
        where = f"quarantine {shorter(self.path)}: none of its {len(self)} samples can be left out: "
        if not self._lines:
            return ""
        if not datasets:
            return where + "no DataLoader of torch draws this program's batches by index"
        if not any(dataset in ("", *datasets) for _, dataset in self._lines):
            return where + f"it draws from {', '.join(sorted(datasets))}, they are of {', '.join(sorted({d for _, d in self._lines}))}"
        return ""

    def end(self) -> str:
        """The line to print at the end of the run; "" if there is none."""
        if not self._lines:
            return ""
        return f"quarantine {shorter(self.path)}: {len(self.left_out)} of its {len(self)} samples were drawn and left out"

    def add(self, step: int, batches, why_not: str, run_dir: str) -> str:
        """Adds the samples of a bad step. Returns the line to print."""
        note = f"# step {step} of {shorter(run_dir)}, {time.strftime('%Y-%m-%d %H:%M')}"
        lines = list(dict.fromkeys((index, batch.dataset) for batch in batches for index in batch.ids))
        new = [line for line in lines if line not in self._named and line not in self._lines]
        self._named.update(new)
        told = [f"{index} {dataset}  {note}" for index, dataset in new] or ([] if lines else [f"{note}: ids unknown: {why_not}"])
        try:
            self._append(told)
        except OSError as problem:
            return f"quarantine {shorter(self.path)}: can't be written: {problem.strerror}; the samples of step {step} are not in it"
        if not lines:
            return (
                f"quarantine {shorter(self.path)}: the samples of step {step} are not known: {why_not}; name them with nanquest.batch(ids)"
            )
        return (
            f"quarantine {shorter(self.path)}: the {len(lines)} samples of step {step} were added; the next run with this file "
            "leaves them out"
        )

    def _append(self, lines: list) -> None:
        """In one write, because other ranks write to the same file."""
        if not lines:
            return
        file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            head = HEAD if os.fstat(file).st_size == 0 else ""
            os.write(file, (head + "".join(f"{line}\n" for line in lines)).encode())
        finally:
            os.close(file)
