"""Places that are about to leave their format's range are reported before they do, and only where it would do harm."""

import json
import math
import subprocess

from attached import BIN, PROGRAMS, AttachTest, main

GROWING = PROGRAMS / "growing.py"
PLACE = "aten::mul in grow (forward, float16)"
END = 10 * math.log2(65504)  # the step in which 2^(step / 10) is fp16's largest number


class ForecastTest(AttachTest):
    def forecasts(self, run_dir="run"):
        return json.loads((self.scratch / run_dir / "manifest.json").read_text())["forecasts"]

    def test_growth_is_told_once_with_its_place_and_end(self):
        process = self.observed(GROWING, "plain", 150)
        self.assert_exit(process)
        (told,) = self.forecasts()
        self.assertEqual(told["place"], PLACE)
        self.assertAlmostEqual(told["step"] + told["steps"], END, delta=1)
        self.assertGreaterEqual(told["steps"], 20)
        self.assertAlmostEqual(told["bits"], (END - told["step"]) / 10, delta=0.01)
        self.assertEqual(process.stderr.count("forecast: " + PLACE), 1, process.stderr)
        self.assertEqual(self.incidents(), [])

    def test_ranges_are_the_values(self):
        import h5py
        self.assert_exit(self.observed(GROWING, "plain", 102, options=("--watch-every", 50)))
        with h5py.File(self.scratch / "run" / "ranges.r0.h5") as file:
            tables = {}
            file.visititems(lambda name, item: tables.__setitem__(name, item[:]) if isinstance(item, h5py.Dataset) else None)
        steps = next(v for k, v in tables.items() if "steps" in k and v.ndim == 2)[:, 0]
        amax = next(v for k, v in tables.items() if "amax" in k and v.ndim == 2)
        self.assertEqual(list(steps), [0, 1, 2, 50, 100])
        wanted = [2 ** (step / 10) for step in steps]
        self.assertTrue(any(all(abs(x - w) <= w * 2 ** -10 for x, w in zip(column, wanted)) for column in amax.T))

    def test_headroom_lists_what_is_near(self):
        self.assert_exit(self.observed(GROWING, "plain", 151, options=("--watch-every", 50)))
        run = [str(BIN / "nanquest-replay"), "headroom", str(self.scratch / "run")]
        process = subprocess.run([*run, "--json"], capture_output=True, text=True)
        self.assertEqual(process.returncode, 1, process.stderr)
        near = json.loads(process.stdout)["near"]
        self.assertEqual(near[0]["place"], PLACE)
        self.assertEqual(near[0]["step"], 150)
        self.assertAlmostEqual(near[0]["bits"], (END - 150) / 10, delta=0.01)
        self.assertIn(PLACE, subprocess.run(run, capture_output=True, text=True).stdout)
        none = subprocess.run([*run, "--bits", "0.5"], capture_output=True, text=True)
        self.assertEqual(none.returncode, 0)
        self.assertIn("is within 0.5 bits", none.stdout)
        missing = subprocess.run([*run[:2], str(self.scratch)], capture_output=True, text=True)
        self.assertEqual(missing.returncode, 3, missing.stderr)

    def test_headroom_of_a_run_that_overflowed_says_so_first(self):
        self.observed(GROWING, "plain", int(END) + 2)
        run = [str(BIN / "nanquest-replay"), "headroom", str(self.scratch / "run")]
        process = subprocess.run(run, capture_output=True, text=True)
        self.assertEqual(process.returncode, 1, process.stderr)
        self.assertRegex(process.stdout.splitlines()[0], r"^step 1\d\d was not finite \(see nanquest-replay .*h5\)$")
        incidents = json.loads(subprocess.run([*run, "--json"], capture_output=True, text=True).stdout)["incidents"]
        self.assertIn(f"step {incidents[0]['step']} ", process.stdout.splitlines()[0])
        subprocess.run([run[0], "-q", incidents[0]["snapshot"]], capture_output=True)
        self.assertIn("FP16_OVERFLOW", subprocess.run(run, capture_output=True, text=True).stdout.splitlines()[0])

    def test_an_overflow_that_does_no_harm_is_not_told(self):
        self.assert_exit(self.observed(GROWING, "gelu", 150))
        self.assertEqual(self.forecasts(), [])

    def test_stop_and_off(self):
        process = self.observed(GROWING, "plain", 150, run_dir="stopped", options=("--on-forecast", "stop"))
        self.assert_exit(process, 4)
        self.assertNotIn("trained", process.stdout)
        self.assert_exit(self.observed(GROWING, "plain", 150, run_dir="off", options=("--on-forecast", "off")))
        self.assertEqual(self.forecasts("off"), [])
        self.assertFalse((self.scratch / "off" / "ranges.r0.h5").exists())

    def test_a_listener_is_told(self):
        process = self.plain(GROWING, "plain", 150, "run")
        self.assert_exit(process)
        self.assertEqual(process.stdout.count("told "), 1, process.stdout)
        self.assertIn(PLACE, process.stdout)


if __name__ == "__main__":
    main()
