"""What the program has open itself to log to: SummaryWriters of torch and tensorboardX, runs of W&B and MLflow, loggers of Lightning's
Trainer; and how each is written to. Nothing is imported, opened or connected here."""

from __future__ import annotations

import dataclasses
import gc
import sys

_WRITERS = (("torch.utils.tensorboard.writer", "SummaryWriter"), ("tensorboardX.writer", "SummaryWriter"))
_RUNS = (("wandb.sdk.wandb_run", "Run"),)
_LIGHTNING = (("lightning.pytorch.trainer.trainer", "Trainer"), ("pytorch_lightning.trainer.trainer", "Trainer"))
_TRANSFORMERS = (("transformers.trainer", "Trainer"),)
_WRITE_THEMSELVES = ("TensorBoardLogger", "WandbLogger")  # classes of Lightning: their writer or run is found without them


@dataclasses.dataclass(frozen=True)
class Entry:
    """An entry that is written at once."""

    step: int  #: step number of the program's own rows
    numbers: dict  #: by name
    title: str = ""  #: of the text
    text: str = ""  #: as Markdown, "" if there is none


def _to_tensorboard(writer, entry: Entry) -> None:
    for name, value in entry.numbers.items():
        writer.add_scalar(name, value, entry.step)
    if entry.text:
        writer.add_text(entry.title, entry.text, entry.step)
    writer.flush()


def _to_wandb(run, entry: Entry) -> None:
    """Adds to the row that the program completes with its next call of log: a row of the probe's own would take a step number of the
    program's, and W&B drops rows whose step is not above the last one."""
    if not run.settings.sync_tensorboard:  # otherwise it copies what a SummaryWriter gets
        text = {entry.title: entry.text} if entry.text else {}
        run.log({**entry.numbers, "nanquest/step": entry.step, **text}, commit=False)
    if entry.title == "nanquest/incident" and entry.text:
        run.alert(title="nanquest: incident", text=entry.text, level="WARN")  # sent if alerts are switched on


def _to_mlflow(place, entry: Entry) -> None:
    client, run = place
    for name, value in entry.numbers.items():
        client.log_metric(run, name, value, step=entry.step)
    if entry.text:
        client.log_text(run, entry.text, f"{entry.title}-{entry.step:08}.md")


def _to_lightning(logger, entry: Entry) -> None:
    if entry.numbers:
        logger.log_metrics(entry.numbers, step=entry.step)
        logger.save()


def _living(*names) -> list:
    """Objects of these classes, (module, name), and of those derived from them, as far as the modules have been imported."""
    kinds = [kind for module, name in names if isinstance(kind := getattr(sys.modules.get(module), name, None), type)]
    for kind in kinds:  # the list grows meanwhile
        kinds += type.__subclasses__(kind)
    ours = {id(kind) for kind in kinds}
    return [it for it in gc.get_objects() if id(type(it)) in ours] if ours else []


def _is_a(it, names) -> bool:
    return any(base.__module__ == module and base.__name__ == name for base in type(it).__mro__ for module, name in names)


def _places_of_lightning(trainer) -> list:
    places = []
    for logger in trainer.loggers if trainer.training else ():
        kinds = {base.__name__ for base in type(logger).__mro__}
        if "MLFlowLogger" in kinds:
            if logger._initialized:  # on the rank that writes
                places.append((_to_mlflow, (logger._mlflow_client, logger._run_id)))
        elif kinds.isdisjoint(_WRITE_THEMSELVES):
            places.append((_to_lightning, logger))
    return places


def _places_of(it) -> list:
    """(function, its argument): where such an object writes, if it is open."""
    if _is_a(it, _WRITERS):
        return [(_to_tensorboard, it)] if getattr(it, "all_writers", None) is not None else []  # a closed one would open a new file
    if _is_a(it, _RUNS):
        return [(_to_wandb, it)] if not getattr(it, "_is_finished", True) else []
    return _places_of_lightning(it) if _is_a(it, _LIGHTNING) else []


def _count_of(it):
    """Steps that a Trainer has made, None if it does not train or is no Trainer."""
    if _is_a(it, _TRANSFORMERS):
        return it.state.global_step if it.is_in_train else None
    return it.fit_loop.epoch_loop._batches_that_stepped if _is_a(it, _LIGHTNING) and it.training else None


def _active_in_mlflow() -> list:
    mlflow = sys.modules.get("mlflow")
    run = mlflow.active_run() if mlflow is not None and hasattr(mlflow, "active_run") else None
    return [(_to_mlflow, (mlflow.MlflowClient(), run.info.run_id))] if run is not None else []


def everything() -> list:
    """Writers, runs and Trainers of this process, open or not. For rare occasions."""
    return _living(*_WRITERS, *_RUNS, *_LIGHTNING, *_TRANSFORMERS)


def places(found) -> list:
    """(function, its first argument): where to write an Entry, for each result of `everything`."""
    return [place for it in found for place in _places_of(it)] + _active_in_mlflow()


def counts(found) -> list:
    """Step counts of the Trainers among these that are training now."""
    return [count for it in found if (count := _count_of(it)) is not None]


def mark(write, place):
    """What identifies a place to write to."""
    return (write, place[1] if write is _to_mlflow else id(place))


def name_of(write, place) -> str:
    return "the run of MLflow" if write is _to_mlflow else f"{type(place).__module__}.{type(place).__qualname__}"
