"""The state of the probe in this process, in one object that every part of it reads. Imports nothing heavy."""

from __future__ import annotations

from .patches import Patches


class ProbeState:
    """Hooks read it at every module call, so everything that they need is a plain attribute."""

    def __init__(self):
        self.current = None  # the start.attachment.Attachment of this process, one at most, from attach to detach
        self.attachment = None  # the same while hooks listen: None while a graph of a device is captured
        self.program = None  # the steps.program.Program, once the training thread has shown itself
        self.module_call = None  # the function that stands in for torch.nn.Module.__call__
        self.patches = Patches()  # what else stands in for functions of PyTorch
        self.handles = []  # hooks: functions that remove them
        self.follows_forks = False  # whether a forked child switches the probe off
        self.update_hooks = ()  # what runs before and after Optimizer.step
        self.phase_before = None  # (phase,) before an update that only makes an optimizer's state, while that runs
        self.capture = None  # (graph, the attachment, detached meanwhile) while a graph of a device is captured
        self.fallback = None  # the policy.fp32_fallback.Fallback in force
        self.wide_modules = None  # weak: modules whose inputs are made fp32
        self.regions_ran = False  # whether a region of torch.compile has run
        self.replicated = []  # weak: every DistributedDataParallel of this process
        self.times_replicated = 0  # how many there have been

    def forget(self) -> None:
        """The hooks stop listening. What the fallback changed in the program stays."""
        self.attachment = self.program = None
        self.update_hooks = ()


probe = ProbeState()
