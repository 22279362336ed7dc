"""Attaches the probe to this process and detaches it. The package's functions and the Trainers' callbacks call these."""

from __future__ import annotations

import sys

from ..base import library
from ..base.attach_arguments import settings_of
from ..base.probe_state import probe
from ..base.say import say
from ..base.settings import Settings, switched_off
from ..tell import reports
from .attachment import Attachment, refuse_to_train


def attach(asked: dict) -> bool:
    """See nanquest.attach."""
    if switched_off():
        return False
    settings = settings_of(asked)
    if probe.current is not None and not probe.current.off:
        _is_the_same(asked)
        return True
    return _attach(settings)


def _is_the_same(asked: dict) -> None:
    """ValueError if an earlier attach() asked for other settings. The settings of `nanquest run` are kept, and a line on stderr names
    the difference."""
    if not (different := "; ".join(probe.current.asked.differences(asked))):
        return
    if probe.current.by_environment:
        probe.current.say_once(f"the settings of nanquest run stay, whatever nanquest.attach() asks for: {different}")
        return
    raise ValueError(f"nanquest is attached with other settings: {different}; call nanquest.detach() first, or leave them out")


def _attach(settings: Settings, by_environment: bool = False) -> bool:
    try:
        import torch
    except ImportError as problem:
        say(f"nothing is observed: {sys.executable} has no {problem.name or 'torch'} (pip install torch)")
        return False
    reports.note(torch=torch.__version__)
    try:
        path = library.check(torch.__version__)
        library.check_build(torch)
        from ..hear import hooks  # looks up PyTorch's private names; Unfit if one that is needed is missing
    except library.Unfit as unfit:
        reports.note(off=str(unfit))
        say(str(unfit))
        return False
    probe.current = Attachment(settings, path, by_environment)
    try:
        hooks.install(probe.current)
        return True
    except Exception as error:  # noqa: BLE001 (an untested PyTorch: a probe with some hooks missing would miss incidents)
        hooks.remove()
        probe.current.off, probe.current = True, None
        line = f"the probe is off: {type(error).__name__}: {error}"
        reports.note(off=line)
        say(line)
        return False


def attach_by_environment() -> None:
    """Called by the hook of `nanquest run` when torch has been imported. Never fails; prints why the probe is off."""
    try:
        if not switched_off() and (probe.current is None or probe.current.off):
            settings = Settings.from_environment()
            if not _attach(settings, by_environment=True) and settings.on_incident == "stop":
                refuse_to_train()
    except Exception as error:  # noqa: BLE001 (the program runs without the probe)
        line = "the probe is off: " + ("" if isinstance(error, ValueError) else f"{type(error).__name__}: ") + str(error)
        reports.note(off=line)
        say(line)


def detach(outcome: str) -> None:
    if probe.current is None:
        return
    from ..hear import hooks

    hooks.remove()
    probe.current.finish(outcome)
    probe.current.off = True
    probe.current = None


def name_samples(ids) -> None:
    if probe.current is None or probe.current.off:
        return
    from ..steps.sample_ids import as_names

    names = as_names(ids)
    if names is None:
        probe.current.say_once("nanquest.batch() needs sample ids, or a dictionary that contains them; the call is ignored")
        return
    probe.current.named_samples = names
    if probe.current.started:
        probe.current.ops.samples(names)
    else:
        probe.current.samples = names


def follow_batches() -> None:
    """For a Trainer's callback: follow from now on which samples its DataLoaders draw."""
    if probe.current is not None and not probe.current.off:
        from ..hear import hooks

        hooks.follow_batches()


def take_batches(loader, count: int) -> None:
    """For a Trainer's callback: the beginning step uses the next `count` batches of this loader."""
    if probe.current is not None and probe.current.drawing is not None and (ids := probe.current.drawing.takes(loader, count)):
        name_samples(ids)


def step(number=None) -> int:
    if probe.current is None or probe.current.off:
        return 0
    if number is not None:
        if probe.current.started:
            probe.current.ops.set_step(int(number))
        else:
            probe.current.first_step = int(number)
    return probe.current.ops.step() if probe.current.started else probe.current.first_step


def record() -> bool:
    if probe.current is None or probe.current.off:
        return False
    if probe.current.started:
        return probe.current.ops.record_step()
    if probe.current.settings.level == "guard":
        return False
    probe.current.settings.record_steps = (0, *probe.current.settings.record_steps)  # the coming step is the first
    return True


def configure(config: dict) -> None:
    """Stores settings of the program for the run's files; too late once the first step has begun."""
    if probe.current is not None and not probe.current.started:
        probe.current.settings.config.update(config)
