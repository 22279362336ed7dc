"""Where this package is installed, and its parts that are not modules."""

from __future__ import annotations

import os

VERSION = "0.1.0"
NAME = __package__.partition(".")[0]
FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BOOTSTRAP = os.path.join(FOLDER, "bootstrap")  # folder with the sitecustomize that makes programs attach
LIBRARIES = os.path.join(FOLDER, "lib")  # of an installed package
