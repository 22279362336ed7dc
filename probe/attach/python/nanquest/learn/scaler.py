"""A loss scaler that skips every update, so that no weight ever changes."""

from __future__ import annotations

import weakref

AT_ONE_SCALE = 20  # skipped updates without a change of the scale
AT_ALL = 40  # a scale of 2**16 that is halved each time would have become 2**-24


class SkippingScalers:
    def __init__(self, attachment, say):
        self._attachment, self._say = attachment, say
        self._skipping = {}  # id of a scaler -> [weak reference to it, skipped updates, the scale at the first of them]
        self._made = set()  # ids of scalers that have let an update pass

    def stepped(self, scaler, made: bool) -> None:
        """GradScaler.step has returned. `made`: it has called the optimizer."""
        if id(scaler) in self._made:
            return
        if made:
            self._made.add(id(scaler))
            self._skipping.pop(id(scaler), None)
            return
        scale = scaler.get_scale()
        entry = self._skipping.get(id(scaler))
        if entry is None or entry[0]() is not scaler:
            entry = self._skipping[id(scaler)] = [weakref.ref(scaler), 0, scale]
        entry[1] += 1
        stays = entry[1] >= AT_ONE_SCALE and scale == entry[2]
        if (stays or entry[1] >= AT_ALL) and not self._attachment.said:  # an incident has said more
            text = (
                f"the loss scaler has skipped all {entry[1]} updates: no weight has changed. Its scale "
                + (f"stays {scale:g}" if stays else f"fell from {entry[2]:g} to {scale:g}")
                + ", at which gradients overflow"
            )
            self._say("skipped", "NO_GRADIENT", text, "")
