"""Lines of the probe on stderr."""

from __future__ import annotations

import sys

from .rank import place_in_group


def _in_a_line() -> bool:
    """Whether the cursor's line shows a progress bar."""
    try:
        return any(not bar.disable for bar in list(sys.modules["tqdm"].tqdm._instances))
    except Exception:  # noqa: BLE001 (no tqdm, or another one than we know)
        return False


def say(line: str) -> None:
    """One line on stderr; a closed stderr is ignored."""
    try:
        rank, ranks = place_in_group()
        here = f"rank {rank}: " if ranks > 1 else ""
        print(("\n" if _in_a_line() else "") + f"nanquest: {here}{line}", file=sys.stderr, flush=True)
    except (OSError, ValueError, AttributeError):
        pass
