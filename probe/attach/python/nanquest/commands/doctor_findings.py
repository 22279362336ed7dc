"""What `nanquest doctor` says, a line at a time."""

from __future__ import annotations

import dataclasses

OK, WARNING, PROBLEM = "ok", "warning", "problem"


@dataclasses.dataclass(frozen=True)
class Finding:
    """One line: how it stands with `name`, and, where it is not well, the way out."""

    name: str
    state: str
    text: str
    way_out: str = ""
    blocks: bool = False  # nothing at all is observed because of it
