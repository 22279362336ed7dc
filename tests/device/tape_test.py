"""The tape of a training on the device: its steps come back bit for bit on the CPU, from the file alone."""

import json
import subprocess
import unittest

from observed import BAD, BIN, Observed, train


class TapeTest(Observed):
    def rewound(self, kind, **how):
        run, [(weights, _)] = self.observed("trace", kind, "batch", tape=64, **how)
        self.assert_same_bits(weights, train(kind, "batch")[0])
        self.assertNotIn("no tape", self.said)
        self.assertNotIn("without its tape", self.said)
        file = sorted(run.glob("incidents/*.r0.h5"))[0]
        process = subprocess.run([str(BIN / "nanquest-replay"), "rewind", "--only-check", "--json", "--device", "cpu", str(file)],
                                 capture_output=True, text=True, timeout=280)
        self.assertEqual(process.returncode, 0, process.stdout + process.stderr)
        said = json.loads(process.stdout)
        self.assertTrue(said["reached"], said)
        self.assertEqual((said["first_step"], said["last_step"], said["failed_ops"]), (0, BAD, 0), said)
        return said

    def test_its_steps_come_back(self):
        for kind in ("adamw", "fused", "fp16"):
            with self.subTest(kind):
                self.assertGreater(self.rewound(kind)["outputs_compared"], 3)

    def test_with_values_in_files(self):
        self.rewound("adamw", tape_folder=self.scratch)


if __name__ == "__main__":
    unittest.main()
