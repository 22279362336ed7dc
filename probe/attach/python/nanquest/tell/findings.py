"""What a run has to tell of that is no incident: a line on stderr, and a row of the manifest under "findings"."""

from __future__ import annotations

from ..base.run_directory import shorter
from ..base.say import say

LINES = 3  # of one kind; the manifest lists all
BAD_CHECKPOINT = "bad_checkpoint"
BAD_LOAD = "bad_load"
NOTHING_LEARNED = "nothing_learned"


class Findings:
    """Any thread may add; the library is called on the one that trains."""

    def __init__(self, attachment):
        self._attachment = attachment
        self._waiting = []  # rows of other threads
        self._said = {}  # kind -> lines
        self.count = 0

    def add(self, kind: str, label: str, text: str, tensor: str = "", file: str = "", quiet: bool = False) -> None:
        """`quiet`: the program shows the text itself."""
        attachment = self._attachment
        self.count += 1
        here = attachment.on_training_thread()
        step = attachment.ops.step() if here else None
        self._said[kind] = self._said.get(kind, 0) + (not quiet)
        if not quiet and self._said[kind] <= LINES:
            say((f"step {step}: " if here else "") + text)
        elif not quiet and self._said[kind] == LINES + 1:
            say(f"more of this kind is listed by: nanquest explain {shorter(attachment.run_dir)}")
        self._waiting.append((kind, label, tensor, file, text))
        if here:
            self.flush()
            attachment.note()

    def flush(self) -> None:
        while self._waiting:
            kind, label, tensor, file, text = self._waiting.pop(0)
            self._attachment.ops.found(self._attachment.ops.step(), kind, label, tensor, file, text)
