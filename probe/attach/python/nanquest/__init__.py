"""nanquest: NaN forensics for PyTorch programs.

    nanquest run -- python train.py          # nothing in the script changes

or from inside, before the first training step:

    import nanquest
    nanquest.attach(run_dir="runs/mine")     # level="trace", watch_every=50, on_incident="continue"

Then `nanquest-replay FILE` replays an incident without Python.
"""

from __future__ import annotations

from .base.package import VERSION
from .base.settings import Settings

__version__ = VERSION
__all__ = ["attach", "batch", "detach", "on_forecast", "on_incident", "pause", "record", "reference", "resume", "step"]


def attach(
    run_dir: str = Settings.run_dir,
    level: str = Settings.level,
    *,
    watch_every: int = Settings.watch_every,
    watch_first: int = Settings.watch_first,
    watch_after: int = Settings.watch_after,
    keep_steps: int = Settings.keep_steps,
    keep_percent: int = Settings.keep_percent,
    keep_memory_percent: int = Settings.keep_memory_percent,
    max_incidents: int = Settings.max_incidents,
    few_files_from: int = Settings.few_files_from,
    compare_replicas: int = Settings.compare_replicas,
    tape: int = Settings.tape,
    tape_folder: str = Settings.tape_folder,
    on_incident: str = Settings.on_incident,
    on_forecast: str = Settings.on_forecast,
    lr_backoff: float = Settings.lr_backoff,
    skip_limit: int = Settings.skip_limit,
    record_steps=Settings.record_steps,
    quarantine: str = Settings.quarantine,
    max_disk: str = Settings.max_disk,
    mute_file: str = Settings.mute_file,
    loggers: str = Settings.loggers,
    frozen_weights: str = Settings.frozen_weights,
    config: dict | None = None,
) -> bool:
    """Observes the training of this process from now on. True if it does.

    level        "guard": loss and gradients before the optimizer writes; "trace": also records each step, so that a bad
                 one can be replayed; "watch": also looks at every value that any operation writes.
    watch_every  at level trace: every so many steps are looked at as by level watch (0 = only the first ones).
    keep_steps   at level trace: so many steps stay with all that their updates overwrote, for damage that shows only
                 later, as long as that takes no more than keep_percent of the time of training (or a tenth of a
                 millisecond of a step) and keep_memory_percent of the free memory.
    on_incident  "continue": do nothing; "skip": keep the optimizer from writing (for the optimizers that PyTorch
                 ships), buffers and generators as before the step; "fallback_fp32": that once, and from then on autocast
                 and loss scaler off, weights and moments in fp32, the learning rate times lr_backoff; then skip;
                 "stop": end the program with exit code 4.
    on_forecast  at levels trace and watch, when an operation is about to leave its format's range: "say" a line, "stop" (end
                 the program with exit code 4 before it happens), "off": do not look.
    few_files_from  of so many processes and more only those write a whole file of an incident whose file matters: the one that
                 was first, its neighbours and one far away; the others leave a row. 0: all, however many.
    compare_replicas  under DistributedDataParallel, on processors: each weight is compared between the ranks once in so many updates,
                 by its hash. The first that differs is said, and whose it is. 0: never.
    tape         so many steps at least, up to twice as many, stay in an unbroken record that takes up to keep_memory_percent of
                 the free memory; an incident's file holds it, for nanquest-replay rewind. 0: none.
    tape_folder  a directory: the tape's large values are files there instead of memory, up to keep_memory_percent of what is
                 free on its disk. They have no name and are gone with the process.
    skip_limit   so many batches skipped in a row end the program with exit code 4.
    record_steps steps that are written to run_dir/recordings, good or bad, as the level records them; see record().
    quarantine   a file: samples of a step that was an incident are named in it, and those that it names are left out where
                 a DataLoader draws them by index. Where that can't be, a line on stderr says so.
    max_disk     "20G": the files of steps are kept under it, of several processes each under its share. The first incident
                 and the newest file stay; of the others those soon after another incident go first, the oldest before the rest.
    mute_file    incidents that this file names are counted, not written and not told; see `nanquest mute`.
    loggers      "on": incidents are also told to the loggers that the program itself has open (TensorBoard, W&B, MLflow, Lightning's),
                 as nanquest/incidents at the step and a text; "off": they are not.
    frozen_weights  "reference": weights that do not train and whose memory was mapped from a file (safetensors) are named in the files
                 of steps by that file, the range and the hash of its bytes; "embed": they are copied in, and no other file is needed.
    config       settings of the run, copied into its files.

    With NANQUEST=off in the environment nothing happens, and False is returned.
    A second call, or one in a process that `nanquest run` has attached to, changes nothing. If the probe can't work
    here (another PyTorch version than it was built for), one line on stderr says so and False is returned.
    """
    from .start import process

    return process.attach(
        Settings(
            run_dir=run_dir,
            level=level,
            watch_every=watch_every,
            watch_first=watch_first,
            watch_after=watch_after,
            keep_steps=keep_steps,
            keep_percent=keep_percent,
            keep_memory_percent=keep_memory_percent,
            max_incidents=max_incidents,
            few_files_from=few_files_from,
            compare_replicas=compare_replicas,
            tape=tape,
            tape_folder=tape_folder,
            on_incident=on_incident,
            on_forecast=on_forecast,
            lr_backoff=lr_backoff,
            skip_limit=skip_limit,
            record_steps=tuple(record_steps),
            quarantine=quarantine,
            max_disk=max_disk,
            mute_file=mute_file,
            loggers=loggers,
            frozen_weights=frozen_weights,
            config=dict(config or {}),
        )
    )


def detach(outcome: str = "detached") -> None:
    """Ends the observation; the files are complete then. Harmless if nothing is attached."""
    from .start import process

    process.detach(outcome)


def on_incident(listener):
    """`listener` is called at every incident from now on, before or after `attach`, with an object that has `step`, `cause` (a
    line), `directory` of the run and `file` ("" if none was written). One that raises is said so and not called again: nothing
    of it reaches the training. Returns `listener`, so it can be a decorator.

        @nanquest.on_incident
        def page_me(incident):
            send(f"step {incident.step}: {incident.cause}")
    """
    from .tell import listeners

    listeners.listeners[listeners.Incident].append(listener)
    return listener


def on_forecast(listener):
    """The same for forecasts: `listener` gets an object with `step`, `text` (what is about to leave its format's range, and
    when) and `directory` of the run. Returns `listener`."""
    from .tell import listeners

    listeners.listeners[listeners.Forecast].append(listener)
    return listener


def batch(ids) -> None:
    """Optional: names the samples of the coming forward pass, so that a report can name the one that did the harm.

    `ids` is one per sample: a list, a tensor, an array; or the batch itself if it is a dictionary that holds them under
    "id", "ids", "idx", "index", "sample_id" or the like. Anything else is ignored with a line on stderr.
    """
    from .start import process

    process.name_samples(ids)


def step(number: int | None = None) -> int:
    """Number of the step that runs now (between two steps: of the one that was made last); 0 if nothing is attached.

    Steps count from 0, a step for each update of the weights: accumulation is inside, several optimizers that write
    different weights in turn make one step together, and an update that a loss scaler leaves out counts as well. With
    `number`, the step that runs (between two steps: the coming one) gets that number, for programs that resume.
    """
    from .start import process

    return process.step(number)


def record() -> bool:
    """Asks for a file of the step that runs now (between two steps: of the coming one), whatever becomes of it.

    It is written to run_dir/recordings when the step ends; nanquest-replay runs it again like an incident. False if
    nothing is attached, or at level "guard", which records nothing.
    """
    from .start import process

    return process.record()


def pause():
    """From here on steps are counted and nothing else: none is judged, recorded or written, and --on-incident does nothing.
    Ends with the first step that begins after resume(); as a context manager it ends by itself:

        with nanquest.pause():
            provoke(model)

    On the thread that trains; harmless if nothing is attached.
    """
    from .start import pausing

    return pausing.pause()


def resume() -> None:
    """Ends a pause. A step in whose middle it is called still belongs to the pause."""
    from .start import pausing

    pausing.resume()


def reference(operator: str):
    """Says in plain PyTorch what an operator of yours is to compute. Beside the operator, in its module:

        @nanquest.reference("my_kernels::scan")
        def scan(x):                  # the arguments of the operator, in any floating-point format
            return x.cumsum(-1)

    nanquest replay --import my_kernels FILE then runs it in compiled regions where the operator has no kernel (a GPU's, on a CPU), and in
    fp64 where the operator makes the first bad value: is it the kernel, or what it was given? ValueError if there is no such operator.
    """
    from .start import references

    return references.register(operator)
