"""What an optimizer holds."""

from __future__ import annotations


def parameters_of(optimizer) -> list:
    return [p for group in optimizer.param_groups for p in group["params"]]


def rates_of(optimizer) -> list:
    return [float(group.get("lr", 0.0)) for group in optimizer.param_groups]
