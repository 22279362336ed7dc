"""Errors that the probe raises on purpose in a program, where a setting asks for that."""

from __future__ import annotations


class BadCheckpoint(RuntimeError):
    """In place of a write, with --bad-checkpoint refuse: what was to be written holds NaN or Inf. `file`: its path as far as it is
    known; `tensor`: the first bad one."""

    def __init__(self, text: str, file: str = "", tensor: str = ""):
        super().__init__(text)
        self.file, self.tensor = file, tensor

    def __reduce__(self):  # it may be raised in another process than it is shown in
        return type(self), (str(self), self.file, self.tensor)
