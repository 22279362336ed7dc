"""gpu.sh says in one line that there is no GPU; gpu.py and gpu_cost.py, which it starts on one, work on the test device, gpu_compiled.py and
gpu_floor.py on a CPU."""

import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent


class GpuScriptTest(unittest.TestCase):
    @unittest.skipIf(torch.cuda.is_available(), "there is a GPU")
    def test_without_a_gpu_it_says_so_in_one_line(self):
        environment = dict(os.environ, NANQUEST_PYTHON=sys.executable)
        script = subprocess.run(["bash", str(HERE / "gpu.sh")], env=environment, capture_output=True, text=True, timeout=120)
        self.assertEqual(script.returncode, 2, script.stderr)
        self.assertEqual(script.stdout, "")
        self.assertEqual(len(script.stderr.splitlines()), 1, script.stderr)
        self.assertIn("no GPU", script.stderr)

    def test_its_table_is_filled_on_the_test_device(self):
        script = subprocess.run([sys.executable, str(HERE / "gpu.py"), "--device", "nqdev", "--small", "--kinds", "mlp"],
                                capture_output=True, text=True, timeout=500)
        self.assertEqual(script.returncode, 0, script.stdout + script.stderr)
        self.assertNotIn("SHORT", script.stdout)
        for line in ("finds what PyTorch finds, NaN and infinities", "mlp: trace, weights", "mlp: watch, weights", "mlp: trace, bad batch"):
            self.assertIn(line, script.stdout)
        self.assertIn("bit for bit", script.stdout)

    def test_costs_are_counted_for_each_level_and_policy(self):
        script = subprocess.run([sys.executable, str(HERE / "gpu_cost.py"), "--device", "nqdev", "--json", "-", "--policies", "continue,skip",
                                 "--rounds", "1", "mlp"], capture_output=True, text=True, timeout=500)
        self.assertEqual(script.returncode, 0, script.stdout + script.stderr)   # nothing waits or launches more often than it may
        found = json.loads(script.stdout)["models"]["mlp"]
        self.assertGreater(found["operations"], 50)
        for level in ("guard", "trace", "default", "watch"):
            for policy in ("continue", "skip"):
                row = found["levels"][level][policy]
                self.assertGreater(row["launches"], 0, (level, policy))   # it looked
                self.assertTrue({"waits", "copies"} <= row.keys(), row)
            self.assertTrue({"ratio", "host_us", "host_us_an_operation"} <= found["levels"][level]["continue"].keys())
        copies = {level: found["levels"][level]["continue"]["copies"] for level in found["levels"]}
        # Of fifty steps of the default one is watched: its additional copies belong to that step.
        self.assertLess(copies["trace"], copies["default"])
        self.assertLess(copies["default"], copies["watch"])

    def test_ways_of_looking_are_timed_and_keep_a_bad_update_out(self):
        environment = {k: v for k, v in os.environ.items() if k != "NANQUEST_DEVICE_LIBRARY"}
        script = subprocess.run([sys.executable, str(HERE / "gpu_floor.py"), "--device", "cpu", "--steps", "1", "--rounds", "1", "mlp"],
                                env=environment, capture_output=True, text=True, timeout=300)
        self.assertEqual(script.returncode, 0, script.stdout + script.stderr)
        self.assertIn("keep their bits", script.stdout)
        self.assertNotIn("CHANGE", script.stdout)

    def test_its_table_of_compiled_programs_is_filled_on_a_cpu(self):
        environment = {k: v for k, v in os.environ.items() if k != "NANQUEST_DEVICE_LIBRARY"}
        script = subprocess.run([sys.executable, str(HERE / "gpu_compiled.py"), "--device", "cpu", "--kinds", "plain"],
                                env=environment, capture_output=True, text=True, timeout=500)
        self.assertEqual(script.returncode, 0, script.stdout + script.stderr)
        for line in ("plain: trace, weights                the same bits", "step 4, aten::log in blocks.1, DOMAIN"):
            self.assertIn(line, script.stdout)


if __name__ == "__main__":
    unittest.main()
