"""Whatever a program does, it does the same with the probe: exit code, output, weights to the last bit."""

import sys

from attached import PROGRAMS, AttachTest, by_day, main

MLP, TRANSFORMER, HABITS = PROGRAMS / "mlp.py", PROGRAMS / "transformer.py", PROGRAMS / "habits.py"
SCALED = PROGRAMS / "scaled.py"
LEVELS = ("guard", "trace", "watch")


class HarmlessTest(AttachTest):
    def assert_same_weights(self, program, *arguments, levels=LEVELS):
        import torch

        self.assert_exit(self.plain(program, *arguments, "plain.pt"))
        plain = torch.load(self.scratch / "plain.pt")
        for level in by_day(levels, [level for level in LEVELS if level not in levels]):
            process = self.observed(program, *arguments, f"{level}.pt", run_dir=level, options=("--level", level))
            self.assert_exit(process)
            self.assertTrue((self.scratch / level / "manifest.json").exists(), "the probe was not there")
            self.assertNotIn("off", process.stderr)
            seen = torch.load(self.scratch / f"{level}.pt")
            for name, value in plain.items():
                # NaN is equal to itself here: bits are compared, not numbers.
                self.assertEqual(value.numpy().tobytes(), seen[name].numpy().tobytes(), f"{level}: {name}")

    def test_weights_of_a_good_run(self):
        self.assert_same_weights(MLP, "adamw-foreach", 99, 0, levels=("trace",))

    def test_weights_of_a_bad_run(self):
        self.assert_same_weights(MLP, "adamw-fused", 4, "inf", levels=("watch",))

    def test_weights_of_sgd(self):
        self.assert_same_weights(MLP, "sgd", 99, 0, levels=("guard",))

    def test_weights_under_autocast_with_scaler_and_accumulation(self):
        self.assert_same_weights(TRANSFORMER, "fp16", "foreach", 3, "scaler", 2)

    def test_a_scale_that_is_looked_for_is_no_incident(self):
        changes, in_a_row = map(int, self.plain(SCALED, "scale.pt").stdout.split())
        self.assertGreaterEqual(changes, 12)
        self.assertGreaterEqual(in_a_row, 8)
        self.assert_same_weights(SCALED)
        for level in ("guard", "trace", "watch"):
            self.assertEqual(self.incidents(level), [])
        said = self.observed(SCALED, "again.pt", run_dir="again", options=("--level", "guard")).stderr
        self.assertEqual(said.count("in a row"), 1, said)
        self.assertIn("no incident in", said)

    def test_weights_under_bf16(self):
        self.assert_same_weights(TRANSFORMER, "bf16", "fused", 99, "none", 1, levels=("trace",))

    def test_habits(self):
        for habit in by_day(("workers", "exception", "compile", "checkpoint"), ("threads", "two-optimizers", "closure", "vmap", "none")):
            with self.subTest(habit):
                plain = self.plain(HABITS, habit)
                self.assert_exit(plain)
                process = self.observed(HABITS, habit, run_dir=habit, options=("--level", "watch"))
                self.assert_exit(process)
                self.assertEqual(process.stdout, plain.stdout)
                self.assertEqual(self.programs_lines(process), self.programs_lines(plain))
                self.assertEqual((self.scratch / habit / "series.r0.h5").exists(), habit != "none")

    def test_os_exit_keeps_its_code(self):
        process = self.observed(HABITS, "os-exit", options=("--level", "watch"))
        self.assert_exit(process, 7)

    def test_h5py_in_the_same_process(self):
        for order in by_day(("h5py-before",), ("h5py-after",)):
            with self.subTest(order):
                process = self.observed(HABITS, order, run_dir=order, options=("--level", "watch"))
                self.assert_exit(process)
                self.assertEqual(len(self.incidents(order)), 1)
                self.assert_bit_exact(self.incidents(order)[0])

    def test_a_run_directory_that_cant_be_made(self):
        (self.scratch / "file").write_text("in the way")
        plain = self.plain(MLP, "sgd", 99, 0)
        process = self.observed(MLP, "sgd", 99, 0, run_dir="file/run", options=("--level", "watch"))
        self.assert_exit(process)
        self.assertEqual(process.stdout, plain.stdout)
        lines = self.probes_lines(process)
        self.assertEqual(len(lines), 1, process.stderr)
        self.assertIn("the probe is off: no files can be written to ", lines[0])

    def test_attach_from_inside_twice(self):
        script = self.scratch / "inside.py"
        script.write_text("import nanquest, runpy, sys\n"
                          "assert nanquest.attach(run_dir='inside', level='watch')\n"
                          "assert nanquest.attach(run_dir='inside', level='watch')\n"
                          "try:\n    nanquest.attach(run_dir='other')\nexcept ValueError:\n    pass\nelse:\n    raise SystemExit('attached')\n"
                          "nanquest.batch(range(16))\n"
                          "sys.argv = [sys.argv[1], 'sgd', '0', 'nan']\n"
                          "runpy.run_path(sys.argv[0])\n"
                          "assert nanquest.step() == 7, nanquest.step()\n"
                          "nanquest.detach(); nanquest.detach()\n")
        process = self.plain(script, str(MLP))
        self.assert_exit(process)
        self.assertEqual(self.incidents("inside")[0].name, "step-00000000.r0.h5")
        self.assertFalse((self.scratch / "other").exists())
        verdict = self.replay("diagnose", self.incidents("inside")[0])
        self.assertEqual(verdict["samples"]["batch"], 16)


if __name__ == "__main__":
    main()
