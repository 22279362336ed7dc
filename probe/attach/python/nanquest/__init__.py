"""nanquest: NaN forensics for PyTorch programs.

    nanquest run -- python train.py          # nothing in the script changes

or from inside, before the first training step:

    import nanquest
    nanquest.attach(run_dir="runs/mine")     # level="trace", watch_every=50, on_incident="continue"

Then `nanquest-replay FILE` replays an incident without Python.
"""

from __future__ import annotations

from .base.attach_arguments import arguments_in_words, signature
from .base.package import VERSION

__version__ = VERSION
__all__ = ["attach", "batch", "detach", "on_forecast", "on_incident", "pause", "record", "reference", "resume", "step"]


def attach(run_dir=None, level=None, **settings) -> bool:
    """Observes the training of this process from now on. Returns True if it does.

    Settings, each with the default and the meaning that it has for `nanquest run`:

    {settings}

    config: settings of the program (a dict), copied into the files of the run.

    With NANQUEST=off in the environment nothing happens, and False is returned. If the probe can't work here (for example with another
    PyTorch version than it was built for), one line on stderr says so and False is returned. A second call that asks for the same
    changes nothing; one that asks for other settings is a ValueError that names them. In a process that `nanquest run` has attached
    to, the settings of `nanquest run` stay, and a line on stderr names those that differ.
    """
    from .start import process

    first = {name: value for name, value in (("run_dir", run_dir), ("level", level)) if value is not None}
    return process.attach({**first, **settings})


attach.__doc__ = attach.__doc__.replace("{settings}", arguments_in_words())
attach.__signature__ = signature()


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
