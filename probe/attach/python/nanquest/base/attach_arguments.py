"""The arguments of nanquest.attach(), made from the table of settings."""

from __future__ import annotations

import inspect
import textwrap

from .settings import Settings
from .settings_table import BY_NAME, SETTINGS

_BY_PLACE = ("run_dir", "level")


def signature() -> inspect.Signature:
    """What help() shows as the signature."""
    by_place, by_name = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    rows = [BY_NAME[name] for name in _BY_PLACE] + [setting for setting in SETTINGS if setting.name not in _BY_PLACE]
    parameters = [inspect.Parameter(row.name, by_place if row.name in _BY_PLACE else by_name, default=row.default) for row in rows]
    return inspect.Signature([*parameters, inspect.Parameter("config", by_name, default=None)], return_annotation=bool)


def arguments_in_words() -> str:
    """Documentation of the settings for attach(), a paragraph for each."""
    rows = [textwrap.fill(f"{row.name}: {row.help} (default: {row.default_text})", 130, subsequent_indent=" " * 8) for row in SETTINGS]
    return "\n    ".join(rows)


def settings_of(asked: dict) -> Settings:
    """The settings; TypeError for an unknown name, ValueError for a value that is not allowed."""
    for name in asked:
        if name not in BY_NAME and name != "config":
            raise TypeError(f"nanquest.attach() has no setting {name!r}; help(nanquest.attach) lists them")
    asked = {**asked, "record_steps": tuple(asked.get("record_steps", ())), "config": dict(asked.get("config") or {})}
    settings = Settings(**asked)
    settings.check()
    return settings
