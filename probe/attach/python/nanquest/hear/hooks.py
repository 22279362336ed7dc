"""The hooks in PyTorch: when the optimizer writes; and all others, installed and removed together.

This code runs inside the program's training: any failure here switches the probe off with one line.
"""

from __future__ import annotations

import os

from torch.optim import optimizer as optimizers

from ..base.probe_state import probe
from ..compiled import device_graphs, not_compiled, region_updates, regions
from ..files import ways_in, ways_out
from ..files.loaded import Loads
from ..files.removals import Removals
from ..files.written import Writes
from ..learn import recomputed
from ..learn.learning import Learning
from ..policy import fp32_fallback
from ..pytorch.guarded import guarded
from ..ranks import replicas
from ..steps import drawn_batches
from ..steps.program import known_program
from ..steps.updates import closure_of
from . import (
    backward_passes,
    deepspeed,
    function_gradients,
    gradient_changes,
    module_calls,
    pipelines,
    python_operators,
    rehearsal_role,
    state_only_updates,
)

OPTIMIZER = 3  # number of the phase in the library


@guarded
def before_step(attachment, optimizer, args, kwargs):
    if state_only_updates.only_makes_state(optimizer):
        # What it writes to weights is not an update by hand.
        probe.phase_before = (attachment.handle.nanquest_phase(OPTIMIZER) if attachment.started else None,)
        return None
    if not attachment.started and not attachment.start():
        return None
    program = known_program()
    program.depth = 0  # a program may update inside a module's forward: its next call is outside again
    if attachment.loads is not None:
        attachment.loads.before_update(program, optimizer)
    if attachment.learning is not None:
        if callable(closure_of(args, kwargs)):
            attachment.learning.step_ends(program)  # the model is called inside this update
        attachment.learning.before_update(program, optimizer)
    return program.updates.before(attachment, optimizer, args, kwargs)


@guarded
def after_step(attachment, optimizer, args, kwargs):
    if probe.phase_before is not None:
        (phase,), probe.phase_before = probe.phase_before, None
        if phase is not None:
            attachment.handle.nanquest_phase(phase)
        return
    program = probe.program
    if program is None:
        return
    program.updates.after(attachment, optimizer)
    if attachment.loads is not None:
        attachment.loads.update_made()
    if attachment.learning is not None:
        attachment.learning.after_update(optimizer)
    # In a program without modules only an update can begin the next step.
    if not program.saw_model:
        program.policy.step_begins()
        attachment.heed(attachment.ops.begin_forward())
    program.saw_model = False
    program.watched_steps.step_made()
    attachment.step_made()


def _in_child():
    """A forked child of a training program is a worker of a data loader or the like. If it trains itself, that is said."""
    if probe.attachment is not None and probe.attachment.started and not probe.attachment.off:
        probe.attachment.off = True
        probe.handles.append(optimizers.register_optimizer_step_pre_hook(_trains_in_child))


def _trains_in_child(optimizer, args, kwargs):
    if probe.attachment is not None:
        probe.attachment.say_once(
            f"process {os.getpid()} trains and is not observed: it was forked from a process that was training already; start it "
            'with multiprocessing\'s method "spawn", or before the training'
        )


def install(attachment) -> None:
    """Installs the hooks. The library is loaded only when the program trains."""
    remove()
    probe.attachment = attachment
    module_calls.install()
    probe.handles.extend(
        [
            optimizers.register_optimizer_step_pre_hook(before_step),
            optimizers.register_optimizer_step_post_hook(after_step),
            # Added from the start, because the fallback begins while hooks run, when none can be added.
            optimizers.register_optimizer_step_pre_hook(fp32_fallback.before_update),
            optimizers.register_optimizer_step_post_hook(fp32_fallback.after_update),
        ]
    )
    probe.handles.extend(rehearsal_role.install(attachment, probe.patches))
    probe.update_hooks = before_step, after_step
    not_compiled.leave(probe.update_hooks)
    regions.install()
    backward_passes.install(probe.patches)
    function_gradients.install(probe.patches)
    gradient_changes.install(probe.patches)
    if attachment.settings.compare_replicas:
        replicas.install(probe.patches)
    probe.handles.extend(device_graphs.install(probe.patches))
    if attachment.settings.level != "guard":
        probe.handles.append(python_operators.install(probe.patches))
    probe.handles.extend([pipelines.install(probe.patches), deepspeed.install(probe.patches)])
    if attachment.settings.bad_checkpoint != "off":
        attachment.writes = Writes(attachment)
        attachment.loads = Loads(attachment)
        probe.handles.append(ways_out.install(probe.patches, attachment.writes))
        probe.handles.append(ways_in.install(probe.patches, attachment.loads))
        if attachment.settings.bad_checkpoint == "refuse":
            Removals(attachment, attachment.writes.files).install(probe.patches)
    if attachment.settings.nothing_learned != "off":
        attachment.learning = Learning(attachment)
        probe.handles.append(recomputed.install(probe.patches, attachment))
    if attachment.quarantine is not None or attachment.settings.level != "guard":
        follow_batches()
    if not probe.follows_forks:
        probe.follows_forks = True
        os.register_at_fork(after_in_child=_in_child)


def follow_batches() -> None:
    """Follows from now on which samples a step uses, if torch's DataLoader draws them."""
    attachment = probe.attachment
    if attachment is not None and attachment.drawing is None:
        attachment.drawing = drawn_batches.Drawing(attachment.quarantine)
        drawn_batches.install(probe.patches, attachment.drawing)


def remove() -> None:
    if probe.fallback is not None:
        probe.fallback.end()
    module_calls.remove()
    probe.patches.undo()
    while probe.handles:
        probe.handles.pop().remove()
    regions.remove()
    region_updates.remove()
    probe.forget()
