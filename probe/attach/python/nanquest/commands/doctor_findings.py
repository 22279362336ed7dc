"""What `nanquest doctor` says, a line at a time."""

from __future__ import annotations

import dataclasses

OK, WARNING, PROBLEM = "ok", "warning", "problem"


@dataclasses.dataclass(frozen=True)
class Finding:
    """One line: the state of `name`, and what to do if it is not good."""

    name: str
    state: str
    text: str
    way_out: str = ""
    blocks: bool = False  # whether nothing at all can be observed because of it
