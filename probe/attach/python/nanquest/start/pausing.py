"""nanquest.pause() and nanquest.resume()."""

from __future__ import annotations

from ..base.probe_state import probe


class Pause:
    """What nanquest.pause() returns. As a context manager it ends the pause that it began."""

    def __init__(self, began: bool):
        self._began = began

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self._began:
            resume()


def _heard(attachment) -> bool:
    if attachment is None or attachment.off:
        return False
    if attachment.started and not attachment.on_training_thread():
        attachment.say_once("nanquest.pause() and nanquest.resume() work only on the training thread")
        return False
    return True


def _set(paused: bool) -> bool:
    """True if it was not paused before."""
    attachment = probe.current
    if not _heard(attachment) or attachment.paused == paused:
        return False
    attachment.paused = paused
    if attachment.started:
        attachment.ops.pause(paused)
    return True


def pause() -> Pause:
    return Pause(_set(True))


def resume() -> None:
    _set(False)
