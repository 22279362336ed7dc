"""Global hooks of PyTorch: which module runs, where a step begins, when the optimizer writes.

Everything here runs inside somebody else's training: whatever fails switches the probe off with one line.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import warnings

import torch
from torch.nn.modules import module as modules
from torch.optim import optimizer as optimizers

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
        self.stack = []          # ids of the modules that run, outermost first
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
        if torch.compiler.is_compiling():
            return None
        attachment = _attachment
        if attachment is None or attachment.off:
            return None
        if attachment.started and attachment.thread != threading.get_ident():
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


def _call_kwargs() -> dict:
    """Keyword arguments of the module call that runs the global pre-hooks: they are not handed to those."""
    frame = sys._getframe(2)
    for _ in range(3):
        if frame is None:
            break
        if frame.f_code.co_filename == modules.__file__:
            kwargs = frame.f_locals.get("kwargs")
            return kwargs if isinstance(kwargs, dict) else {}
        frame = frame.f_back
    return {}


def _begin(attachment, module, args):
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
    kwargs = _call_kwargs()
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


@guarded
def before_forward(attachment, module, args):
    if _observed is None or not _observed.stack:
        _begin(attachment, module, args)
    if _observed is None:
        return
    known = _observed.paths.of(module)
    _observed.stack.append((id(module), known is not None))
    if known is not None:
        attachment.handle.nanquest_push(*known)


@guarded
def after_forward(attachment, module, args, output):
    stack = _observed.stack if _observed is not None else ()
    if not any(entry[0] == id(module) for entry in stack):
        return
    while stack:
        ident, pushed = stack.pop()
        if pushed:
            attachment.handle.nanquest_pop()
        if ident == id(module):
            return


def _leave_all(attachment):
    """What an interrupt left behind: no module runs when the optimizer does."""
    while _observed.stack:
        if _observed.stack.pop()[1]:
            attachment.handle.nanquest_pop()


@guarded
def before_step(attachment, optimizer, args, kwargs):
    global _observed
    if not attachment.started and not attachment.start():
        return
    if _observed is None:
        _observed = _Observed()
    _leave_all(attachment)
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
    global _attachment, _observed, _child_hook
    remove()
    _attachment, _observed = attachment, None
    _handles.extend([
        modules.register_module_forward_pre_hook(before_forward),
        modules.register_module_forward_hook(after_forward, always_call=True),
        optimizers.register_optimizer_step_pre_hook(before_step),
        optimizers.register_optimizer_step_post_hook(after_step),
    ])
    if not _child_hook:
        _child_hook = True
        # The second firing that it speaks of is harmless here, and the program did nothing to be warned of.
        warnings.filterwarnings("ignore", message="Using `torch.compile\\(module\\)` when there are global hooks")
        os.register_at_fork(after_in_child=_in_child)


def remove() -> None:
    global _attachment, _observed
    while _handles:
        _handles.pop().remove()
    _attachment = _observed = None
