"""Who is told of an incident besides stderr: functions that the program has given."""

from __future__ import annotations

import dataclasses

from .settings import say


@dataclasses.dataclass(frozen=True)
class Incident:
    """What a function given to nanquest.on_incident gets."""

    step: int       #: as the program counts; see nanquest.step
    cause: str      #: what is known so far, in a line; nanquest-replay finds the rest
    directory: str  #: of the run's files
    file: str       #: the snapshot, "" if none was written


listeners = []


def tell(incident: Incident) -> None:
    """All of them. What fails is said, is not asked again, and never reaches the training."""
    for listener in [*listeners]:
        try:
            listener(incident)
        except Exception as error:  # noqa: BLE001
            listeners.remove(listener)
            say(f"{getattr(listener, '__qualname__', type(listener).__qualname__)}, which is told of incidents, raised "
                f"{type(error).__name__}: {' '.join(str(error).split())[:200]}; it is not called again")
