"""Incidents that each minor version of PyTorch recorded (six.py; recorded/MINOR.tar.xz, made by ../install/minors.py --record) come to the same
verdict under this one. By day the oldest minor's; at night all."""

import json
import os
import pathlib
import subprocess
import tarfile
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
# What is right for each program of six.py: cause, operation, step.
VERDICTS = {
    "convolution_in_fp16": ("FP16_OVERFLOW", "aten::mul", 3),
    "attention_without_a_key": ("ALL_MASKED_ROW", "aten::_softmax", 3),
    "recurrent_net_and_a_bad_sample": ("BAD_DATA", "aten::clone", 3),
    "logarithm_of_an_empty_count": ("LOG_ZERO", "aten::log", 3),
    "distance_of_equal_points": ("SINGULAR_GRAD", "aten::div", 3),
    "scale_of_a_constant_column": ("DIV_ZERO", "aten::div", 3),
}


class Minors(unittest.TestCase):
    def test_the_same_verdict(self):
        archives = sorted(HERE.glob("recorded/*.tar.xz"), key=lambda file: [int(part) for part in file.name.split(".")[:2]])
        self.assertEqual(archives[0].name, "2.8.tar.xz")
        for archive in archives if os.environ.get("NANQUEST_NIGHTLY") == "1" else archives[:1]:
            with tempfile.TemporaryDirectory() as folder, tarfile.open(archive) as files:
                files.extractall(folder, filter="data")
                for kind, verdict in VERDICTS.items():
                    with self.subTest(minor=archive.name, kind=kind):
                        found, reproduction = replayed(pathlib.Path(os.environ["NANQUEST_BIN"], "nanquest-replay"), pathlib.Path(folder, f"{kind}.h5"))
                        self.assertEqual(found, verdict)
                        self.assertTrue(reproduction["bit_exact"] or reproduction.get("agreement") == "within_bounds", reproduction)


def replayed(program, file):
    """(cause, operation, step) of its verdict, and how the replay agrees with what was recorded."""
    done = subprocess.run([program, "-q", "--json", "--no-files", file], text=True, capture_output=True, check=False)
    if not done.stdout:
        raise AssertionError(done.stderr)
    verdict = json.loads(done.stdout)
    return (verdict["cause"], verdict["culprit"]["op"], verdict["step"]), verdict["reproduction"]


if __name__ == "__main__":
    unittest.main(verbosity=2)
