"""`nanquest diff`: differences that were planted are named, and rounding alone is no finding."""

import json
import os
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "attach"))
from attached import BIN, AttachTest, by_day, main  # noqa: E402
from truth import PLANTED  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM, ROUNDING = HERE / "planted.py", HERE / "rounding.py"
PLANTED_BY_DAY = ("rms-eps", "missing-bias", "rope-base")
ROUNDING_BY_DAY = ("channels-last", "batch-split")


class DiffTest(AttachTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.shared_folder()

    def recorded(self, program, *words):
        """The first step of the program with these words; run once."""
        run = self.folder / "-".join([program.stem, *words])
        file = run / "recordings" / "step-00000000.r0.h5"
        if not file.exists():
            self.assert_exit(self.observed(program, *words, run_dir=run, options=("--record-steps", "0"), OMP_NUM_THREADS="2"))
        return file

    def diff(self, a, b, *options):
        return subprocess.run([str(BIN / "nanquest-replay"), "diff", str(a), str(b), "-q", *options], text=True,
                              capture_output=True, timeout=600, env={**os.environ, "NO_COLOR": "1"})

    def document(self, a, b, code):
        process = self.diff(a, b, "--json")
        self.assert_exit(process, code)
        return json.loads(process.stdout)

    def test_planted_differences_are_named_first(self):
        plain = self.recorded(PROGRAM)
        for name in by_day(PLANTED_BY_DAY, [n for n in PLANTED if n not in PLANTED_BY_DAY]):
            with self.subTest(name):
                kinds, words = PLANTED[name]
                report = self.document(plain, self.recorded(PROGRAM, name), 1)
                first = report["findings"][0]
                self.assertIn(first["kind"], kinds, first)
                for word in words:
                    self.assertIn(word, first["text"])
                self.assertTrue(report["complete"], report)

    def test_rounding_alone_is_no_finding(self):
        for name in by_day(ROUNDING_BY_DAY, ("threads", "compiled")):
            with self.subTest(name):
                report = self.document(self.recorded(ROUNDING, name, "A"), self.recorded(ROUNDING, name, "B"), 0)
                self.assertTrue(report["alike"], report)
                self.assertEqual([end["name"] for end in report["ends"] if end["name"] != "loss"],
                                 ["gradients", "updated weights"])
                self.assertTrue(all(end["compared"] > 5 or end["name"] == "loss" for end in report["ends"]), report)

    def test_the_same_step_of_the_same_program_is_alike(self):
        plain = self.recorded(PROGRAM)
        process = self.diff(plain, plain)
        self.assert_exit(process, 0)
        self.assertIn("ALIKE", process.stdout)
        self.assertLessEqual(len(process.stdout.splitlines()), 10)

    def test_two_programs_are_said_to_be_two(self):
        process = self.diff(self.recorded(PROGRAM), self.recorded(ROUNDING, "channels-last", "A"))
        self.assert_exit(process, 1)
        self.assertIn("% of operations in common", process.stdout)
        self.assertLessEqual(len(process.stdout.splitlines()), 2)

    def test_what_is_no_recording_is_refused(self):
        broken = self.folder / "broken.h5"
        broken.write_bytes(b"no snapshot")
        self.assert_exit(self.diff(broken, broken), 3)


if __name__ == "__main__":
    main()
