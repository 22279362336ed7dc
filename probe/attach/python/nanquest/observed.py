"""What the hooks share: the attachment, what is known of the program on its training thread, and the rule that no hook
fails the program."""

from __future__ import annotations

import functools
from threading import get_ident

import torch
from torch.compiler import is_compiling

from .naming import ArgumentNames, ModulePaths, ParameterNumbers, is_plain, models_with, unwrap
from .updates import UpdateDoor

attachment = None    # the Attachment that listens, or None
program = None       # Program, once the training thread has shown itself


class Program:
    """What is known about the program's models and its innermost module."""

    def __init__(self, attached):
        self.attached = attached
        self.paths = ModulePaths()
        self.arguments = ArgumentNames()
        self.numbers = ParameterNumbers()
        self.depth = 0           # modules that run, one inside the other
        self.saw_model = False   # since the last update
        self.door = UpdateDoor(self)
        self._counts = {}        # id of a root -> number of its parameters when they were named

    def name_parameter(self, name, tensor, owner, key):
        """The library's number for a parameter that `owner` holds under `key`."""
        number = self.attached.ops.name_parameter(name, tensor) if is_plain(tensor) else -1
        self.numbers.know(tensor, name, number, owner, key)
        return number

    def name_model(self, root, again=False):
        """Names of the parameters and buffers, once per model and again when it has got others."""
        if self.paths.of(root) is not None and not self.paths.is_root(root):
            return  # a part of a model that has its names already
        parameters = sum(1 for _ in root.parameters())
        if not again and self._counts.get(id(root)) == parameters and self.paths.is_root(root):
            return
        prefix = self.paths.add_root(root)
        self._counts[id(root)] = parameters
        trained = any(p.requires_grad for p in root.parameters())
        for path, module in root.named_modules():
            place = prefix + path + "." if path else prefix
            for key, parameter in module._parameters.items():
                if parameter is None or not is_plain(parameter) or self.numbers.of(parameter) is not None:
                    continue
                # The gate looks at parameters; a frozen model is only something that the step reads.
                if trained:
                    self.name_parameter(place + key, parameter, module, key)
                else:
                    self.attached.ops.name_tensor("buffer", place + key, parameter)
            for key, buffer in module._buffers.items():
                if buffer is not None and is_plain(buffer):
                    self.attached.ops.name_tensor("buffer", place + key, buffer)

    def name_models_again(self, parameters):
        """Some of these have no name: a model got others in their place, or was not called yet (the forward pass of an
        optimizer with a closure is still to come)."""
        for root in self.paths.roots():
            self.name_model(root, again=True)
        unknown = {id(p) for p in parameters if self.numbers.of(p) is None}
        if unknown:
            for root in models_with(unknown):
                self.name_model(unwrap(root))


def known() -> Program:
    """The program, which has begun to train."""
    global program
    if program is None:
        program = Program(attachment)
    return program


def forget() -> None:
    global attachment, program
    attachment = program = None


def guarded(hook):
    """The hook, or nothing: no exception but a wanted SystemExit leaves it. Only on the thread that trains."""
    @functools.wraps(hook)
    def call(*args):
        if is_compiling():
            return None
        attached = attachment
        if attached is None or attached.off:
            return None
        if attached.thread is not None and attached.thread != get_ident():
            return None
        try:
            return hook(attached, *args)
        except Exception as error:  # noqa: BLE001: a training must not end because of the probe
            line = " ".join(str(error).split())
            attached.give_up(f"the probe is off: {hook.__name__}: {type(error).__name__}: {line[:300]}")
            return None
    return call


def elsewhere() -> bool:
    """Whether tensors are not what they seem here: a transform or a dispatch mode is at work, or a trace is made."""
    return (torch._C._len_torch_dispatch_stack() > 0 or torch._C._functorch.peek_interpreter_stack() is not None
            or torch._C._get_tracing_state() is not None)


def in_backward() -> bool:
    return torch._C._current_graph_task_id() != -1
