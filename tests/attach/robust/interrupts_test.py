"""Signals and exceptions in the middle of a step: the program ends, or goes on, as it would have."""

import itertools
import os
import random
import signal
import subprocess
import sys
import time

from robust import NIGHT, RobustTest, main, nightly

PLACES = ("forward", "backward", "update", "between")


class InterruptsTest(RobustTest):
    def test_signals_that_end_the_program(self):
        cases = (("backward", "SIGINT"), ("update", "SIGTERM"), ("forward", "SIGINT"), ("between", "SIGINT"))
        for place, name in cases if NIGHT else cases[:2]:
            with self.subTest(place=place, name=name):
                self.clear("run")
                self.assert_same("interrupts", place, name, code=-getattr(signal, name))
                found = self.assert_files(killed=name == "SIGTERM")
                self.assertEqual(found[0].name, "step-00000002.r0.h5")
                self.assert_bit_exact(found[0])

    @nightly
    def test_a_handler_of_the_programs_own(self):
        self.assert_same("interrupts", "backward", "handled")
        self.assert_files()

    def test_exceptions_that_are_caught(self):
        # The step that was broken off is made again under the same number or the next: what counts is the weights.
        cases = [("forward", "error", "watch"), ("backward", "caught", "trace")]
        if NIGHT:
            cases = itertools.product(PLACES, ("caught", "error"), ("trace", "watch"))
        for place, action, level in cases:
            with self.subTest(place=place, action=action, level=level):
                self.clear("run")
                process = self.assert_same("interrupts", place, action, level=level)
                self.assertNotIn("off", process.stderr)
                for snapshot in self.assert_files():
                    self.assert_bit_exact(snapshot)

    def test_interrupts_from_outside_at_any_moment(self):
        chance = random.Random(int.from_bytes(os.urandom(4), "little"))
        for name in ("SIGINT", "SIGTERM") * 6 if NIGHT else ("SIGINT",):
            self.clear("run")
            process = subprocess.Popen(
                [sys.executable, "-m", "nanquest", "run", "--run-dir", "run", "--level", "watch", "--", sys.executable,
                 str(self.program("interrupts")), "between", "wait"], cwd=self.scratch, env=self.environment(),
                text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertEqual(process.stdout.readline(), "training\n")
            pause = chance.random() * 0.1
            time.sleep(pause)
            process.send_signal(getattr(signal, name))
            _, errors = process.communicate(timeout=60)
            with self.subTest(name=name, pause=pause):
                self.assertEqual(process.returncode, -getattr(signal, name), errors)
                self.assertNotIn("the probe is off", errors)
                self.assert_bit_exact(self.assert_files(killed=name == "SIGTERM")[0])


if __name__ == "__main__":
    main()
