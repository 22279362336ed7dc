"""The environment variables that nanquest reads, and those set here that it does not know. docs/running.md says what each does."""

from __future__ import annotations

import difflib
import os

from . import settings
from .settings_table import SETTINGS

# Variables that are not settings: those of the package itself, and of the programs.
OTHERS = (
    settings.OFF,
    settings.SWITCH,
    settings.LIBRARY,
    settings.RUN_ID,
    settings.PLAN,
    settings.PROGRAM,
    settings.REPORTS,
    "NANQUEST_BIN",
    "NANQUEST_MODEL",
    "NANQUEST_SIMD",
)
# Of the build and the tests: known here, so that they are not reported as typos.
BUILDING = ("NANQUEST_CACHE", "NANQUEST_SKIP_PACKAGES", "NANQUEST_TEST_PACKAGES", "NANQUEST_NIGHTLY", "NANQUEST_PYTHON")


def known() -> list:
    """All variables that may be set for a run."""
    return sorted({*OTHERS, *(setting.variable for setting in SETTINGS)})


def set_here(environment=os.environ) -> tuple:
    """(known variables as name -> value, unknown ones as name -> the nearest known name or "")."""
    ours, strangers, names = {}, {}, known()
    for name, value in sorted(environment.items()):
        if name in names:
            ours[name] = value
        elif name.startswith(("NANQUEST", "NANOQUEST")) and name not in BUILDING:
            strangers[name] = next(iter(difflib.get_close_matches(name, names, 1)), "")
    return ours, strangers
