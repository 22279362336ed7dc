"""The options of `nanquest run` and `nanquest env`, made from the table of settings."""

from __future__ import annotations

import argparse

from ..base.settings import Settings
from ..base.settings_table import SETTINGS


def _reads(kind):
    def read(text: str):
        try:
            return kind.read(text)
        except ValueError as problem:
            raise argparse.ArgumentTypeError(f"{text!r}: {problem}") from None

    return read


def add_to(parser) -> None:
    """The settings that most people need first, the others by topic."""
    groups = {"": parser}
    for setting in (setting for setting in SETTINGS if setting.option):
        if setting.topic not in groups:
            groups[setting.topic] = parser.add_argument_group(setting.topic)
        kind = setting.kind
        several = {"choices": kind.values} if kind.values else {"type": _reads(kind), "metavar": kind.metavar}
        alone = {"nargs": "?", "const": setting.alone} if setting.alone is not None else {}
        text = f"{setting.help} (default: {setting.default_text})".replace("%", "%%")
        groups[setting.topic].add_argument(setting.flag, default=setting.default, help=text, **several, **alone)


def settings_of(options) -> Settings:
    """ValueError for settings that can't be combined."""
    settings = Settings(**{setting.name: getattr(options, setting.name) for setting in SETTINGS if setting.option})
    settings.check()
    return settings
