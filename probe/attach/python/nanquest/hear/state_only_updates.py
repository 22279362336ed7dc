"""Updates that are not training steps: before torch.distributed.checkpoint saves or loads the state of a new optimizer, it makes an
update with a learning rate of zero, so that the optimizer creates its state."""

from __future__ import annotations

import sys

from ..pytorch import private

_FRAMES = 12  # frames to search; other packages may have wrapped Optimizer.step


def only_makes_state(optimizer) -> bool:
    """Whether the beginning update is one of these."""
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
