"""Where this package lies, and what lies in it beside its modules."""

from __future__ import annotations

import os

VERSION = "0.1.0"
NAME = __package__.partition(".")[0]
FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BOOTSTRAP = os.path.join(FOLDER, "bootstrap")  # with the sitecustomize by which programs attach
LIBRARIES = os.path.join(FOLDER, "lib")  # of an installed package
