"""The state of the probe in this process, in one object that every part of it reads. Imports nothing heavy."""

from __future__ import annotations


class ProbeState:
    """Hooks read it at every module call, so what they look for there is an attribute, not a question."""

    def __init__(self):
        self.attachment = None    # the Attachment that listens, or None
        self.program = None       # steps.program.Program, once the training thread has shown itself
        self.fallback = None      # the policy.fp32_fallback.Fallback in force, or None
        self.wide_modules = None  # weak: modules whose inputs are made fp32, or None if there are none
        self.regions_ran = False  # whether a region of torch.compile has run

    def forget(self) -> None:
        """Nobody listens any longer. What the fallback did to the program outlives that."""
        self.attachment = self.program = None


probe = ProbeState()
