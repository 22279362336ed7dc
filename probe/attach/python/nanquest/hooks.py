"""Where the probe listens in PyTorch: which module runs, where a step begins, when the optimizer writes.

Everything here runs inside somebody else's training: whatever fails switches the probe off with one line.

Module calls are heard in place of torch.nn.Module.__call__, not by global module hooks: those send every call through
the slow path of _call_impl, torch.compile warns of them, and they don't get keyword arguments.
"""

from __future__ import annotations

import functools
import os
import threading
from threading import get_ident

import torch
from torch.compiler import is_compiling
from torch.optim import optimizer as optimizers

from . import compiled
from .naming import ArgumentNames, ModulePaths, is_plain, unwrap
from .updates import UpdateDoor

_attachment = None
_handles = []
_observed = None     # the state of the observed thread


class _Observed:
    """What is known about the program's models and its innermost module."""

    def __init__(self):
        self.paths = ModulePaths()
        self.arguments = ArgumentNames()
        self.depth = 0           # modules that run, one inside the other
        self.saw_model = False   # since the last update
        self.door = UpdateDoor(self.name_parameter)
        self.counts = {}         # id of a root -> number of its parameters when they were named

    def name_parameter(self, name, tensor):
        if is_plain(tensor):
            _attachment.ops.name_tensor("parameter", name, tensor)

    def name_model(self, root):
        """Names of the parameters and buffers, once per model and again when it has got others."""
        if self.paths.of(root) is not None and not self.paths.is_root(root):
            return  # a part of a model that has its names already
        if self.counts.get(id(root)) == (parameters := sum(1 for _ in root.parameters())) and self.paths.is_root(root):
            return
        prefix = self.paths.add_root(root)
        self.counts[id(root)] = parameters
        trained = any(p.requires_grad for p in root.parameters())
        for name, parameter in root.named_parameters():
            if not is_plain(parameter):
                continue
            # The gate looks at parameters; a frozen model is only something that the step reads.
            _attachment.ops.name_tensor("parameter" if trained else "buffer", prefix + name, parameter)
            self.door.know(parameter, prefix + name)
        for name, buffer in root.named_buffers():
            if is_plain(buffer):
                _attachment.ops.name_tensor("buffer", prefix + name, buffer)


def guarded(hook):
    """The hook, or nothing: no exception but a wanted SystemExit leaves it."""
    @functools.wraps(hook)
    def call(*args):
        if is_compiling():
            return None
        attachment = _attachment
        if attachment is None or attachment.off:
            return None
        if attachment.thread is not None and attachment.thread != get_ident():
            return None
        try:
            return hook(attachment, *args)
        except Exception as error:  # noqa: BLE001: a training must not end because of the probe
            _switch_off(attachment, hook.__name__, error)
            return None
    return call


def _switch_off(attachment, where, error):
    line = " ".join(str(error).split())
    attachment.give_up(f"the probe is off: {where}: {type(error).__name__}: {line[:300]}")


def _elsewhere() -> bool:
    """Whether tensors are not what they seem here: a transform or a dispatch mode is at work, or a trace is made."""
    return (torch._C._len_torch_dispatch_stack() > 0 or torch._C._functorch.peek_interpreter_stack() is not None
            or torch._C._get_tracing_state() is not None)


@guarded
def begin(attachment, module, args, kwargs):
    """A model is called from outside any module."""
    global _observed
    if _elsewhere() or not torch.is_grad_enabled() or torch._C._current_graph_task_id() != -1:
        return
    root = unwrap(module)
    trained = any(p.requires_grad for p in root.parameters())
    if not attachment.started:
        # Another thread than the main one shows that it trains by its first update.
        if not trained or threading.current_thread() is not threading.main_thread() or not attachment.start():
            return
    if _observed is None:
        _observed = _Observed()
    fresh = not any(isinstance(a, torch.Tensor) and a.grad_fn is not None for a in (*args, *kwargs.values()))
    if trained:
        _observed.saw_model = True
        # A cell called on its own last output goes on with the same pass.
        if fresh:
            attachment.heed(attachment.ops.begin_forward())
    if trained or (_observed.paths.of(root) is None and next(iter(root.parameters()), None) is not None):
        _observed.name_model(root)
    for name, tensor in _observed.arguments.of(root, args, kwargs):
        attachment.ops.name_tensor("batch", name, tensor)


_original_call = torch.nn.Module.__call__


def module_call(self, *args, **kwargs):
    """Stands in for torch.nn.Module.__call__. It runs at every module call: keep it short."""
    if is_compiling():
        return _original_call(self, *args, **kwargs)
    attachment = _attachment
    if attachment is None or attachment.off or (attachment.thread is not None and attachment.thread != get_ident()):
        return _original_call(self, *args, **kwargs)
    seen = _observed
    if seen is None or not seen.depth:
        begin(self, args, kwargs)
        seen = _observed
        if seen is None or attachment.off:
            return _original_call(self, *args, **kwargs)
    depth = seen.depth
    seen.depth = depth + 1
    known = seen.paths.of(self)
    if known is not None:
        attachment.handle.nanquest_push(*known)
    try:
        return _original_call(self, *args, **kwargs)
    finally:
        seen.depth = depth
        if known is not None:
            attachment.handle.nanquest_pop()


@guarded
def before_step(attachment, optimizer, args, kwargs):
    global _observed
    if not attachment.started and not attachment.start():
        return
    if _observed is None:
        _observed = _Observed()
    _observed.depth = 0  # a program may update inside a module's forward: what it calls next is outside
    _observed.door.before(attachment, optimizer, args, kwargs)


@guarded
def after_step(attachment, optimizer, args, kwargs):
    if _observed is None:
        return
    _observed.door.after(attachment, optimizer)
    # A program without modules has no other place where its next step could begin.
    if not _observed.saw_model:
        attachment.heed(attachment.ops.begin_forward())
    _observed.saw_model = False


def _in_child():
    """A forked child of a program that trains is a data loader's worker or the like."""
    if _attachment is not None and _attachment.started:
        _attachment.off = True


_child_hook = False


def install(attachment) -> None:
    """Begins to listen. Nothing is loaded before the program trains."""
    global _attachment, _observed, _child_hook, _original_call
    remove()
    _attachment, _observed = attachment, None
    if torch.nn.Module.__call__ is not module_call:
        _original_call = torch.nn.Module.__call__
        torch.nn.Module.__call__ = module_call
    _handles.extend([
        optimizers.register_optimizer_step_pre_hook(before_step),
        optimizers.register_optimizer_step_post_hook(after_step),
    ])
    compiled.install(attachment)
    if not _child_hook:
        _child_hook = True
        _leave_to_the_compiler()
        os.register_at_fork(after_in_child=_in_child)


def _leave_to_the_compiler() -> None:
    """torch.compile begins below module_call, as it does below the function that it stands in for."""
    frames = torch._C._dynamo.eval_frame
    try:
        skip = frames._FrameExecStrategy(frames._FrameAction.SKIP, frames._FrameAction.DEFAULT)
        frames.set_code_exec_strategy(module_call.__code__, skip)
    except AttributeError:
        pass  # it compiles this frame too, then


def remove() -> None:
    global _attachment, _observed
    # Who took the place after us calls us: then module_call stays, and passes everything on.
    if torch.nn.Module.__call__ is module_call:
        torch.nn.Module.__call__ = _original_call
    while _handles:
        _handles.pop().remove()
    compiled.remove()
    _attachment = _observed = None
