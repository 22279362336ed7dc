"""What can't be rehearsed is reported in a line, with a way out, and leaves nothing behind."""

import glob
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from attached import BIN, PROGRAMS, AttachTest, main

PROGRAM = PROGRAMS / "rehearsed.py"


class RefusedTest(AttachTest):
    def environment(self, **more):
        return super().environment(**{"NANQUEST_BIN": str(BIN), "TMPDIR": str(self.scratch / "tmp"), **more})

    def setUp(self):
        super().setUp()
        (self.scratch / "tmp").mkdir()

    @classmethod
    def setUpClass(cls):
        """One incident for all: at step 40 of "batch"."""
        cls.runs = tempfile.mkdtemp(prefix="nanquest-rehearse-test-")
        one = cls()
        one.setUp()
        try:
            one.observed(PROGRAM, "batch", 45, run_dir=os.path.join(cls.runs, "run"))
        finally:
            one.doCleanups()
        (cls.snapshot,) = glob.glob(os.path.join(cls.runs, "run", "incidents", "*.h5"))

    def runTest(self):
        pass

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.runs)

    def rehearse(self, *options, snapshot=None, command=None):
        return self.nanquest("rehearse", snapshot or self.snapshot, *options, "--", *(command or (sys.executable, PROGRAM, "batch", 300)))

    def assert_refused(self, process, code, *words):
        self.assert_exit(process, code)
        self.assertEqual(process.stdout, "")
        last = process.stderr.splitlines()[-1]
        for word in words:
            self.assertIn(word, last)
        self.assert_nothing_left()

    def assert_nothing_left(self):
        self.assertEqual(glob.glob(os.path.join(self.runs, "run", "incidents", "*rehears*")), [])
        self.assertEqual([*(self.scratch / "tmp").glob("nanquest*")], [])

    def test_what_is_no_change(self):
        for text, *words in (("rate=1", "'rate=1' is nothing that can be changed", "lr, weight_decay"), ("lr=*x", "'x' is not a number"),
                             ("lr", "has no value"), ("beta1=1", "not a number below 1"), ("clip=0", "above 0"),
                             ("precision=bf16", "only precision=fp32"), ("warmup=1.5", "not a whole number"), ("skip=a", "not a whole number"),
                             ("lr=1,lr=2", "lr is there twice")):
            with self.subTest(text):
                self.assert_refused(self.rehearse("--set", text), 2, "--set " + text, *words)

    def test_what_is_no_snapshot_or_no_command(self):
        self.assert_refused(self.rehearse(snapshot="absent.h5"), 3, "absent.h5")
        other = self.scratch / "other.h5"
        other.write_text("no snapshot")
        self.assert_refused(self.rehearse(snapshot=other), 3, "other.h5")
        self.assert_refused(self.rehearse(snapshot=self.scratch), 2, "is a directory", "incidents")
        self.assert_refused(self.rehearse(command=["no-such-program"]), 127, "no such command")
        self.assert_refused(self.nanquest("rehearse", self.snapshot), 2, "no command; write: nanquest rehearse SNAPSHOT -- python")
        self.assert_refused(self.rehearse("--steps", "15"), 2, "at least 16")

    def test_a_command_that_fails_or_never_gets_there(self):
        self.assert_refused(self.rehearse(command=[sys.executable, "-c", "raise SystemExit('out of data')"]), 2,
                            "ended with code 1 before it made a step: out of data")
        self.assert_refused(self.rehearse(command=[sys.executable, "-c", "print('nothing to do')"]), 2,
                            "the command made no step of a training: nothing to do")
        self.assert_refused(self.rehearse(command=[sys.executable, PROGRAM, "batch", 30]), 2,
                            "the program ended after step 29, before step 40", "--first-step")
        crash = f"import sys; sys.argv = ['x', 'batch', '20']; exec(open({str(PROGRAM)!r}).read()); raise SystemExit('disk is full')"
        self.assert_refused(self.rehearse(command=[sys.executable, "-c", crash]), 2, "step 20, long before step 40", "disk is full")

    def test_a_run_that_does_not_go_bad_again(self):
        """No root is claimed; the file says why."""
        process = self.rehearse("--steps", "16", command=[sys.executable, PROGRAM, "rate", 300])
        self.addCleanup(lambda: [os.unlink(path) for path in glob.glob(os.path.join(self.runs, "run", "incidents", "*rehears*"))])
        self.assert_exit(process, 1)
        self.assertIn("not claimed", process.stdout)
        self.assertIn("does not go bad at step 40", process.stdout)
        # Level guard does not see all that level trace sees; nothing was tried after these two.
        runs = [line.partition(": step")[0] for line in self.probes_lines(process) if "the program as it is" in line]
        self.assertEqual(runs, ["nanquest: the program as it is", "nanquest: the program as it is, at level trace"])
        self.assertIn("does the program fix its seed", process.stderr)

    def test_a_program_that_looks_at_its_loss_itself(self):
        """It raises in the step of the incident, before the loss is checked."""
        run = os.path.join(self.scratch, "raises")
        self.observed(PROGRAM, "raises", 60, run_dir=run)
        (snapshot,) = glob.glob(os.path.join(run, "incidents", "*.h5"))
        process = self.rehearse("--set", "lr=*0.5", "--placebos", "0", snapshot=snapshot, command=[sys.executable, PROGRAM, "raises", 300])
        self.assert_exit(process, 1)
        self.assertIn("step 40: the program ended with code 1: ArithmeticError: the loss is not finite", process.stderr)

    @staticmethod
    def runs_of_the_program():
        lines = subprocess.run(["pgrep", "-af", f"{PROGRAM} batch 300"], capture_output=True, text=True).stdout.splitlines()
        return [line for line in lines if " rehearse " not in line]

    def test_an_interrupt_ends_all_of_it(self):
        command = [sys.executable, "-m", "nanquest", "rehearse", self.snapshot, "--", sys.executable, PROGRAM, "batch", "300"]
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            process = subprocess.Popen(command, cwd=self.scratch, stderr=subprocess.PIPE, text=True, env=self.environment())
            self.assertIn("the program as it is", process.stderr.readline())  # a run is over, and the next begins
            until = time.monotonic() + 60
            while not self.runs_of_the_program() and time.monotonic() < until:
                time.sleep(0.02)
            process.send_signal(number)
            _, said = process.communicate(timeout=60)
            self.assertEqual(process.returncode, code, said)
            self.assert_nothing_left()
            self.assertEqual(self.runs_of_the_program(), [])


if __name__ == "__main__":
    main()
