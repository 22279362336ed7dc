"""Counts NaN and Inf in tensors, in a thread of its own while the program goes on writing them: reading memory takes as long as it takes,
and a write uses one processor."""

from __future__ import annotations

import threading

WORTH_A_THREAD = 4 << 20  # bytes


class Counting:
    """Begins to count. `tensors` must stay as they are until `result`. `beside`: in a thread."""

    def __init__(self, ops, tensors, beside: bool):
        self._ops, self._tensors = ops, tensors
        self._result, self._error, self._thread = None, None, None
        # What lies on a device is read there at once: another thread has another stream.
        if beside and all(it.is_cpu for it in tensors) and sum(it.nbytes for it in tensors) >= WORTH_A_THREAD:
            self._begun = threading.Event()
            thread = threading.Thread(target=self._work, name="nanquest-counting", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the interpreter is shutting down, or there are too many threads
                return
            self._thread = thread
            self._begun.wait()

    def _work(self) -> None:
        try:
            self._ops.one_thread()
            self._begun.set()
            self._result = self._ops.non_finite(self._tensors)
        except Exception as error:  # noqa: BLE001 (shown by the caller)
            self._error = error
        finally:
            self._begun.set()

    def result(self) -> list:
        """Per tensor two numbers: of NaN and of Inf. Waits for them."""
        if self._thread is None:
            return self._ops.non_finite(self._tensors)
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._result
