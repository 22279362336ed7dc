"""Pipelines of torch.distributed.pipelining: the micro-batch of each pass, and the stages that this process runs."""

from __future__ import annotations

import functools

from ..base.import_watch import Waiting
from ..pytorch import private
from ..pytorch.guarded import guarded
from ..steps.program import known_program


@guarded
def _begins(attached, stage, micro_batch):
    """A forward or backward pass of one of the schedule's micro-batches."""
    if not attached.started or not stage.chunks:  # the first model's call starts the probe, and belongs to the first micro-batch
        return
    program = known_program()
    if stage.stage_index not in program.stages:
        program.stages.append(stage.stage_index)
    pipeline = " ".join(map(str, (stage.chunks, stage.num_stages, *program.stages)))
    if pipeline != program.pipeline:
        program.pipeline = pipeline
        attached.ops.note("pipeline", pipeline)
    # What was computed before the first pass of the step is not recorded, so it counts as the batch.
    program.fed = not stage.is_first and not attached.ops.between_steps()
    attached.handle.nanquest_micro_batch(program.stages.index(stage.stage_index) * stage.chunks + micro_batch)


@guarded
def _is_over(attached):
    if attached.started:
        known_program().fed = False
        attached.handle.nanquest_micro_batch(-1)


def _around_pass(own):
    def one_chunk(self, *args, **kwargs):
        _begins(self, args[0] if args else next(iter(kwargs.values())))
        return own(self, *args, **kwargs)

    return one_chunk


def _around_step(own):
    def step(self, *args, **kwargs):
        try:
            return own(self, *args, **kwargs)
        finally:
            _is_over()

    return step


def _watch_stages(patches, module) -> None:
    if (stages := private.pipeline_stage.owner()) is not None:
        for name in ("forward_one_chunk", "backward_one_chunk", "backward_weight_one_chunk"):
            patches.put(stages, name, _around_pass)


def _watch_schedules(patches, module) -> None:
    for kind in (module.PipelineScheduleSingle, module.PipelineScheduleMulti):
        patches.put(kind, "step", _around_step)


def install(patches) -> Waiting:
    """Begins to observe. `remove` of the result and `patches.undo` end it."""
    waiting = Waiting(
        {
            "torch.distributed.pipelining.stage": functools.partial(_watch_stages, patches),
            "torch.distributed.pipelining.schedules": functools.partial(_watch_schedules, patches),
        }
    )
    waiting.begin()
    return waiting
