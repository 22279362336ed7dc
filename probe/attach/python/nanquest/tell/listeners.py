"""Functions of the program that are called at incidents and forecasts (nanquest.on_incident, nanquest.on_forecast)."""

from __future__ import annotations

import dataclasses

from ..base.say import say


@dataclasses.dataclass(frozen=True)
class Incident:
    """What a function given to nanquest.on_incident gets."""

    step: int  #: step number, see nanquest.step
    cause: str  #: what is known so far, one line; nanquest-replay finds the rest
    directory: str  #: directory of the run's files
    file: str  #: path of the snapshot, "" if none was written
    finite: bool = False  #: a spike or a divergence: nothing is NaN or Inf


@dataclasses.dataclass(frozen=True)
class Forecast:
    """What a function given to nanquest.on_forecast gets."""

    step: int  #: step number, see nanquest.step
    text: str  #: which values approach the limit of their format, and when they pass it
    directory: str  #: directory of the run's files; manifest.json has the numbers


listeners = {Incident: [], Forecast: []}


def failure(error: Exception) -> str:
    """The error that a listener raised, as part of a line."""
    return f"raised {type(error).__name__}: {' '.join(str(error).split())[:200]}"


def tell(news) -> None:
    """Calls all listeners of this kind. One that fails is reported and not called again; the error never reaches the training."""
    asked = listeners[type(news)]
    for listener in [*asked]:
        try:
            listener(news)
        except Exception as error:  # noqa: BLE001
            asked.remove(listener)
            say(
                f"{getattr(listener, '__qualname__', type(listener).__qualname__)}, called for {type(news).__name__.lower()}s, "
                f"{failure(error)}; it is not called again"
            )
