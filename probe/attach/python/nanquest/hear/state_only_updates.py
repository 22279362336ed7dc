"""Updates that are no step of a training: torch.distributed.checkpoint has an optimizer that holds nothing yet make one of nothing, at a
rate of zero, before it saves or loads its state."""

from __future__ import annotations

import sys

from ..pytorch import private

_FRAMES = 12  # as far out a function is looked for that calls an optimizer, through what others have put around its step


def only_makes_state(optimizer) -> bool:
    """Whether the update that begins is such a one."""
    function = private.init_optimizer.find()
    if function is None or optimizer.state:
        return False
    frame = sys._getframe(1)
    for _ in range(_FRAMES):
        if frame is None:
            return False
        if frame.f_code is function.__code__:
            return True
        frame = frame.f_back
    return False
