"""Writes incidents to the loggers that the program, its Trainers and its callbacks have open (open_loggers.py). Loggers are only looked
for when there is something to write.

Numbers are `nanquest/incidents` (so far), `nanquest/loss_scale` and `nanquest/skipped` (batches so far), texts `nanquest/incident`,
`nanquest/verdict` (once a replay has left one beside the file) and `nanquest/policy`.
"""

from __future__ import annotations

import os
import time
import weakref

from ..base.probe_state import probe
from ..base.say import say
from . import open_loggers
from .listeners import failure

TEXTS = 16  # last numbers of incidents; numbering continues
SHARE = 0.05  # share of the training time for searching loggers, if incidents are many


def _loss_scale():
    """Of the scaler that the program uses, None if there is none."""
    return probe.program.scaling.known_scale() if probe.program is not None else None


class Loggers:
    def __init__(self, attachment):
        self._attached = attachment
        self._on = attachment.settings.loggers == "on"
        self._known = []  # weak: what was found, open or not
        self._look_again = 0.0  # time of the search, by time.monotonic
        self._failed = set()
        self._waiting = []  # (step, verdict) of files that may be replayed while the program runs
        self._texts = 0

    def incident(self, news, number: int) -> None:
        """Writes the `number`th reported incident; `news` is a listeners.Incident."""
        if not self._on:
            return
        self._texts += 1
        text = news.cause + (f"\n\nsee it with: `nanquest-replay {news.file}`" if news.file else "")
        numbers = {"nanquest/incidents": number}
        if (scale := self._asked(_loss_scale, None)) is not None:
            numbers["nanquest/loss_scale"] = scale
        step = news.step + self.ahead()
        if self._write(step, numbers, "nanquest/incident", text if self._texts <= TEXTS else "") and news.file:
            self._waiting.append((step, os.path.splitext(news.file)[0] + ".md"))

    def skipped(self, step: int, number: int) -> None:
        """Writes that the `number`th batch was skipped."""
        self._write(step + self.ahead(), {"nanquest/skipped": number})

    def fell_back(self, step: int, text: str) -> None:
        self._write(step + self.ahead(), {}, "nanquest/policy", text)

    def verdicts(self) -> None:
        """Writes the verdicts that replays (`nanquest run --explain`) have made since."""
        for each in [each for each in self._waiting if os.path.exists(each[1])]:
            self._waiting.remove(each)
            try:
                with open(each[1], encoding="utf-8") as file:
                    text = file.read().partition("\n## ")[0]  # the tables are kept there
            except OSError:
                continue
            self._write(each[0], {}, "nanquest/verdict", text)

    def _write(self, step: int, numbers: dict, title: str = "", text: str = "") -> bool:
        """False if the program has no logger open."""
        places = self._asked(lambda: open_loggers.places(self._found()), [])
        for write, place in places:
            if (mark := open_loggers.mark(write, place)) in self._failed:
                continue
            try:
                write(place, open_loggers.Entry(step, numbers, title, text))
            except Exception as error:  # noqa: BLE001 (a training must not end because of its logger)
                self._failed.add(mark)
                say(f"{open_loggers.name_of(write, place)}, which the program logs to, {failure(error)}; nothing more is logged to it")
        return bool(places)

    def ahead(self) -> int:
        """The Trainer's step minus the probe's. They differ if the Trainer has resumed, or is not the first one in this process. The
        Trainer may have counted the reported step already, or not yet."""

        def ahead():
            counts = open_loggers.counts(self._found())
            by = counts[-1] - self._attached.ops.step() if counts else 0
            return 0 if by == 1 else by

        return self._asked(ahead, 0)

    def _asked(self, what, otherwise):
        """The result of `what`, or `otherwise` if the program's objects don't answer as known versions do."""
        if not self._on:
            return otherwise
        try:
            return what()
        except Exception as error:  # noqa: BLE001
            self._attached.say_once(f"incidents may be missing in the program's loggers: looking for loggers {failure(error)}")
            return otherwise

    def _found(self) -> list:
        began = time.monotonic()
        if began >= self._look_again:
            self._known = [weakref.ref(it) for it in open_loggers.everything()]
            ended = time.monotonic()
            self._look_again = ended + (ended - began) / SHARE
        return [it for known in self._known if (it := known()) is not None]
