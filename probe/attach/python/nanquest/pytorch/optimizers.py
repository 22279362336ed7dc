"""What an optimizer holds."""

from __future__ import annotations

import json

_NUMBERS = (float, int, bool, tuple)
_GROUPS = 32  # so many groups' settings are looked at


def parameters_of(optimizer) -> list:
    return [p for group in optimizer.param_groups for p in group["params"]]


def rates_of(optimizer) -> list:
    return [float(group.get("lr", 0.0)) for group in optimizer.param_groups]


def settings_of(optimizer) -> list:
    """For each group its settings that are numbers, by name. Rates have schedules, and are left out."""
    groups = optimizer.param_groups[:_GROUPS]
    return [{key: it for key, it in group.items() if key != "lr" and type(it) in _NUMBERS} for group in groups]


def settings_text(settings) -> str:
    """The same as it stands in files (probe/trace/optimizer_settings.h): each number as text, those of a tuple one by one."""

    def text(value):
        return f"{value:.6g}" if isinstance(value, float) else str(value)

    def flat(group):
        for key, value in group.items():
            if isinstance(value, tuple):
                yield from ((f"{key}[{i}]", text(each)) for i, each in enumerate(value))
            else:
                yield key, text(value)

    return json.dumps([dict(flat(group)) for group in settings])
