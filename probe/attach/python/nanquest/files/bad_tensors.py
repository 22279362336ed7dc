"""Tensors with NaN or Inf, in words."""

from __future__ import annotations

from ..base.run_directory import shorter


def bad_in_words(shown: str, elements: int, nan: int, inf: int, more: int) -> str:
    """Like "0.weight has 3 NaN in 128 values (2 more tensors are bad)"."""
    counts = " and ".join(f"{number} {what}" for number, what in ((nan, "NaN"), (inf, "Inf")) if number)
    others = f" ({more} more {'tensors are' if more > 1 else 'tensor is'} bad)" if more else ""
    return f"{shown} has {counts} in {elements} values{others}"


class BadTensors:
    """The first bad tensor of a file, and how many more there are."""

    def __init__(self, rows):
        (self.found, self.entry, self.nan, self.inf), self.more = rows[0], len(rows) - 1
        known = [entry for _, entry, _, _ in rows if entry is not None]
        self._since = next((entry for entry in known if entry.since >= 0), None)

    def in_words(self, step, incidents) -> str:
        """`step`: the one that runs, None on another thread."""
        text = bad_in_words(self.found.shown, self.found.tensor.numel(), self.nan, self.inf, self.more)
        if self._since is not None:
            file = incidents.get(self._since.since)
            text += f", bad since step {self._since.since}"
            text += f", written by {self._since.op}" if self._since.op else ""
            return text + (f" ({shorter(file)})" if file else "")
        own = step is not None and self.entry is not None and self.entry.memory == self.found.tensor.untyped_storage().data_ptr()
        return text + (f", last written by {self.entry.op} in step {step}" if own and self.entry.op else "")
