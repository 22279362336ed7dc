"""nanquest: NaN forensics for PyTorch programs.

    nanquest run -- python train.py          # nothing in the script changes

or from inside, before the first training step:

    import nanquest
    nanquest.attach(run_dir="runs/mine")     # level="trace", watch_percent=1, on_incident="continue"

Then `nanquest-replay FILE` replays an incident without Python.
"""

from __future__ import annotations

from .base.attach_arguments import arguments_in_words, signature
from .base.errors import BadCheckpoint
from .base.package import VERSION

__version__ = VERSION
__all__ = ["BadCheckpoint", "attach", "batch", "detach", "on_forecast", "on_incident", "pause", "record", "reference", "resume", "step"]


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
    """Ends the observation and completes the files. Does nothing if nothing is attached."""
    from .start import process

    process.detach(outcome)


def on_incident(listener):
    """Calls `listener` at every incident from now on. May be called before or after `attach`. `listener` gets an object with `step`,
    `cause` (a line), `directory` of the run and `file` ("" if none was written). If it raises an error, a line says so, it is not called
    again, and the training goes on. Returns `listener`, so it can be a decorator.

        @nanquest.on_incident
        def page_me(incident):
            send(f"step {incident.step}: {incident.cause}")
    """
    from .tell import listeners

    listeners.listeners[listeners.Incident].append(listener)
    return listener


def on_forecast(listener):
    """The same for forecasts: `listener` gets an object with `step`, `text` (which values approach the limit of their format, and when
    they pass it) and `directory` of the run. Returns `listener`."""
    from .tell import listeners

    listeners.listeners[listeners.Forecast].append(listener)
    return listener


def batch(ids) -> None:
    """Optional: names the samples of the next forward pass, so that a report can name the bad sample.

    `ids` has one id per sample: a list, a tensor or an array; or it is the batch itself, if that is a dictionary with the ids under
    "id", "ids", "idx", "index", "sample_id" or the like. Anything else is ignored with a line on stderr.
    """
    from .start import process

    process.name_samples(ids)


def step(number: int | None = None) -> int:
    """The number of the active step (between two steps: of the last one); 0 if nothing is attached.

    Steps count from 0. Each update of the weights is a step, including its accumulation. Several optimizers that write different weights
    in turn make one step together. An update that a loss scaler skips counts too. `number` sets the number of the active step (between two
    steps: of the next one), for programs that resume.
    """
    from .start import process

    return process.step(number)


def record() -> bool:
    """Saves the active step (between two steps: the next one) to a file in run_dir/recordings, whether it is good or bad.

    The file is written when the step ends. nanquest-replay reads it like an incident. Returns False if nothing is attached, or at level
    "guard", which records nothing.
    """
    from .start import process

    return process.record()


def pause():
    """Pauses the observation: steps are only counted, not checked, recorded or saved, and --on-incident is not applied. The pause ends with
    the first step that begins after resume(). As a context manager it ends by itself:

        with nanquest.pause():
            provoke(model)

    Call it on the training thread. Does nothing if nothing is attached.
    """
    from .start import pausing

    return pausing.pause()


def resume() -> None:
    """Ends a pause. A step that is active when it is called still belongs to the pause."""
    from .start import pausing

    pausing.resume()


def reference(operator: str):
    """A decorator for a function that computes the same as an operator of yours, in plain PyTorch. In the module of the operator:

        @nanquest.reference("my_kernels::scan")
        def scan(x):                  # the arguments of the operator, in any floating-point format
            return x.cumsum(-1)

    nanquest replay --import my_kernels FILE uses it in compiled regions if the operator has no kernel there (a GPU kernel, on a CPU), and
    computes it in fp64 if the operator makes the first bad value, to tell a wrong kernel from bad inputs. ValueError if there is no such
    operator.
    """
    from .start import references

    return references.register(operator)
