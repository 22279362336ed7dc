"""Functions of the program that are called at incidents and forecasts (nanquest.on_incident, nanquest.on_forecast)."""

from __future__ import annotations

import dataclasses

from ..base.say import say


@dataclasses.dataclass(frozen=True)
class Incident:
    """What a function given to nanquest.on_incident gets."""

    step: int  #: as the program counts; see nanquest.step
    cause: str  #: what is known so far, in a line; nanquest-replay finds the rest
    directory: str  #: of the run's files
    file: str  #: the snapshot, "" if none was written


@dataclasses.dataclass(frozen=True)
class Forecast:
    """What a function given to nanquest.on_forecast gets."""

    step: int  #: as the program counts
    text: str  #: what is about to leave its format's range, and when
    directory: str  #: of the run's files; manifest.json has the numbers


listeners = {Incident: [], Forecast: []}


def failure(error: Exception) -> str:
    """The error that a listener raised, for a line."""
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
