"""Lines of the probe on stderr."""

from __future__ import annotations

import sys


def _in_a_line() -> bool:
    """Whether the cursor's line shows a progress bar."""
    try:
        return any(not bar.disable for bar in list(sys.modules["tqdm"].tqdm._instances))
    except Exception:  # noqa: BLE001 (no tqdm, or another one than we know)
        return False


def say(line: str) -> None:
    """One line on stderr; a closed stderr is ignored."""
    try:
        print(("\n" if _in_a_line() else "") + f"nanquest: {line}", file=sys.stderr, flush=True)
    except (OSError, ValueError, AttributeError):
        pass
