"""Where this package is installed, and its parts that are not modules."""

from __future__ import annotations

import os

VERSION = "0.1.0"
NAME = __package__.partition(".")[0]
FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BOOTSTRAP = os.path.join(FOLDER, "bootstrap")  # folder with the sitecustomize that makes programs attach
LIBRARIES = os.path.join(FOLDER, "lib")  # of an installed package


def skill() -> str:
    """How a coding agent uses nanquest: agents.md of the installed package, or docs/agents.md of the sources that this package lies in."""
    sources = os.path.join(FOLDER, *[os.pardir] * 4, "docs")
    for folder in (FOLDER, sources):
        if os.path.exists(path := os.path.join(folder, "agents.md")):
            with open(path, encoding="utf-8") as file:
                return file.read()
    return "docs/agents.md is missing: install nanquest again\n"
