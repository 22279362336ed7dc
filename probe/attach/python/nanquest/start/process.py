"""The attachment of this process, one at most, and what a program or a Trainer's callback may tell it: what is behind the functions
of the package."""

from __future__ import annotations

from ..base import library
from ..base.say import say
from ..base.settings import Settings, switched_off
from ..tell import reports
from .attachment import Attachment

current: Attachment | None = None


def attach(settings: Settings) -> bool:
    """See nanquest.attach."""
    global current
    if switched_off():
        return False
    settings.check()
    if current is not None and not current.off:
        return True
    import torch

    reports.note(torch=torch.__version__)
    try:
        path = library.check(torch.__version__)
    except library.Unfit as unfit:
        reports.note(off=str(unfit))
        say(str(unfit))
        return False
    from ..hear import hooks
    current = Attachment(settings, path)
    try:
        hooks.install(current)
        return True
    except Exception as error:  # noqa: BLE001: another PyTorch than ours were tried with; half a probe is none
        hooks.remove()
        current.off, current = True, None
        line = f"the probe is off: {type(error).__name__}: {error}"
        reports.note(off=line)
        say(line)
        return False


def attach_by_environment() -> None:
    """What the hook of `nanquest run` calls once torch is there: never fails, says why the probe is off."""
    try:
        attach(Settings.from_environment())
    except Exception as error:  # noqa: BLE001: the program runs without the probe
        line = "the probe is off: " + ("" if isinstance(error, ValueError) else f"{type(error).__name__}: ") + str(error)
        reports.note(off=line)
        say(line)


def detach(outcome: str) -> None:
    global current
    if current is None:
        return
    from ..hear import hooks
    hooks.remove()
    current.finish(outcome)
    current.off = True
    current = None


def name_samples(ids) -> None:
    if current is None or current.off:
        return
    from ..steps.sample_ids import as_names
    names = as_names(ids)
    if names is None:
        current.say_once("nanquest.batch got neither sample ids nor a dictionary that holds them, and ignores it")
        return
    current.named_samples = names
    if current.started:
        current.ops.samples(names)
    else:
        current.samples = names


def follow_batches() -> None:
    """For a Trainer's callback: from here on it is known what its DataLoaders draw."""
    if current is not None and not current.off:
        from ..hear import hooks
        hooks.follow_batches()


def take_batches(loader, count: int) -> None:
    """For a Trainer's callback: the step that begins is made of the next `count` batches of this loader."""
    if current is not None and current.drawing is not None and (ids := current.drawing.takes(loader, count)):
        name_samples(ids)


def step(number=None) -> int:
    if current is None or current.off:
        return 0
    if number is not None:
        if current.started:
            current.ops.set_step(int(number))
        else:
            current.first_step = int(number)
    return current.ops.step() if current.started else current.first_step


def record() -> bool:
    if current is None or current.off:
        return False
    if current.started:
        return current.ops.record_step()
    if current.settings.level == "guard":
        return False
    current.settings.record_steps = (0, *current.settings.record_steps)  # the coming step is the first
    return True


def configure(config: dict) -> None:
    """Settings of the run for its files; too late once the first step has begun."""
    if current is not None and not current.started:
        current.settings.config.update(config)
