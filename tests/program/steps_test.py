"""LibTorch programs that do not use nanquest: their steps are found, the bad one becomes a file that replays, and no
result changes."""

import json
import math

from program import PROGRAMS, ProgramTest, main

TRAINS = PROGRAMS / "trains"
STEPS = 12  # of the program
# Ways of training, and the number of steps that is found for each.
HEALTHY = {"sgd": STEPS, "adam": STEPS, "accumulates": STEPS, "evaluates": STEPS, "clips": STEPS, "by_hand": STEPS, "recurs": STEPS,
           "on_a_thread": STEPS}


def losses(text):
    """The losses that the program printed, by step."""
    lines = [line.split() for line in text.splitlines()]
    return {int(words[0]): float.fromhex(words[1]) for words in lines if len(words) == 2 and words[0].isdigit()}


class Healthy(ProgramTest):
    def test_nothing_changes_and_nothing_is_told(self):
        for way, steps in HEALTHY.items():
            with self.subTest(way):
                alone, seen = self.alone(TRAINS, way), self.seen(TRAINS, way, run_dir=way)
                self.assert_exit(seen)
                self.assertEqual(seen.stdout, alone.stdout)
                self.assertEqual(self.programs_lines(seen), [])
                self.assertEqual(self.probes_lines(seen), [f"nanquest: attached; files go to {way}",
                                                           f"nanquest: no incident in {steps} steps"])
                self.assertEqual(self.incidents(way), [])

    def test_two_networks_in_turn_share_a_step(self):
        alone, seen = self.alone(TRAINS, "pair"), self.seen(TRAINS, "pair")
        self.assertEqual(seen.stdout, alone.stdout)
        # The first turn of each is a separate step, because it is not yet known that there are two.
        self.assertEqual(self.last_line(seen), f"no incident in {STEPS + 1} steps")

    def test_exit_code_passes_and_the_files_are_complete(self):
        seen = self.seen(TRAINS, "exits")
        self.assert_exit(seen, 3)
        self.assertEqual(seen.stdout, self.alone(TRAINS, "exits").stdout)
        self.assertEqual(self.last_line(seen), "no incident in 6 steps")
        manifest = json.loads((self.scratch / "run" / "manifest.json").read_text())
        self.assertEqual((manifest["status"], manifest["outcome"]), ("finished", "the program ended"))
        self.assertEqual(manifest["config"]["command"], f"{TRAINS} exits")

    def test_series_holds_losses_and_rate(self):
        import h5py
        told = losses(self.seen(TRAINS, "sgd").stdout)
        with h5py.File(self.scratch / "run" / "series.r0.h5") as series:
            text, ends = series["strings/bytes"][:].tobytes(), series["strings/offsets"][:]
            table = series["history/scalars"]
            names = [text[ends[n]:ends[n + 1]].decode() for n in table["columns"][:]]
            columns = {name: list(values) for name, values in zip(names, table["values"][:].T)}
        self.assertEqual(columns["step"], [*range(STEPS)])
        self.assertEqual(columns["loss"], [*told.values()])
        self.assertEqual(columns["lr"], [0.05] * STEPS)

    def test_who_does_not_train_leaves_nothing(self):
        seen = self.seen(TRAINS, "infers")
        self.assert_exit(seen)
        self.assertEqual(seen.stdout, self.alone(TRAINS, "infers").stdout)
        self.assertIn("made no training step", self.last_line(seen))
        self.assertFalse((self.scratch / "run").exists())

    def test_children_have_runs_of_their_own(self):
        seen = self.seen("sh", "-c", f"{TRAINS} sgd && {TRAINS} adam && true")
        self.assert_exit(seen)
        self.assertEqual(self.last_line(seen), f"no incident in 2 processes of {STEPS} steps each")
        self.assertEqual(len([*(self.scratch / "run").glob("process-*/manifest.json")]), 1)


class Bad(ProgramTest):
    def one_incident(self, step, run_dir="run"):
        files = self.incidents(run_dir)
        self.assertEqual([file.name for file in files], [f"step-{step:08d}.r0.h5"])
        return files[0]

    def test_bad_batch(self):
        for way, step in (("sgd", 0), ("sgd", 7), ("adam", 7), ("accumulates", 4), ("by_hand", 7), ("on_a_thread", 5), ("recurs", 6)):
            with self.subTest(f"{way} {step}"):
                run_dir = f"{way}-{step}"
                alone, seen = self.alone(TRAINS, way, step), self.seen(TRAINS, way, step, run_dir=run_dir)
                self.assert_exit(seen)
                self.assertEqual(seen.stdout, alone.stdout)
                self.assertTrue(math.isnan(losses(alone.stdout)[step]))
                snapshot = self.one_incident(step, run_dir)
                self.assert_bit_exact(snapshot)
                verdict = self.replay("diagnose", snapshot)
                # What ran before the first step is on no record: it may have computed the tensor.
                self.assertEqual(verdict["cause"], "BAD_DATA" if step else "UNKNOWN", verdict)
                cause = (verdict.get("likely") or verdict)["cause"]
                self.assertEqual((verdict["step"], cause, verdict["origin"]), (step, "BAD_DATA", "input"), verdict)

    def test_huge_rate(self):
        alone, seen = self.alone(TRAINS, "runs_away"), self.seen(TRAINS, "runs_away")
        self.assertEqual(seen.stdout, alone.stdout)
        snapshot = self.incidents()[0]
        first = min(step for step, loss in losses(alone.stdout).items() if not math.isfinite(loss))
        self.assertLessEqual(self.replay("info", snapshot)["step"], first)
        self.assert_bit_exact(snapshot)

    def test_weights_are_named_by_order_and_sizes(self):
        import h5py
        self.seen(TRAINS, "sgd", 7)
        with h5py.File(self.incidents()[0]) as snapshot:
            text, ends = snapshot["strings/bytes"][:].tobytes(), snapshot["strings/offsets"][:]
            words = {text[begin:end].decode() for begin, end in zip(ends, ends[1:])}
        self.assertLessEqual({"leaf 0 [16, 6]", "leaf 1 [16]", "leaf 4 [1, 16]", "leaf 5 [1]"}, words)

    def test_level_guard_names_the_step(self):
        seen = self.seen(TRAINS, "sgd", 7, options=("--level", "guard"))
        self.assertEqual(seen.stdout, self.alone(TRAINS, "sgd", 7).stdout)
        self.assertIn("nanquest: step 7: ", seen.stderr)
        self.assertIn("level guard keeps no trace", seen.stderr)
        self.assertEqual(self.incidents(), [])

    def test_stop(self):
        seen = self.seen(TRAINS, "sgd", 7, options=("--on-incident", "stop"))
        self.assert_exit(seen, 4)
        self.assertIn("; stopped", seen.stderr)
        self.one_incident(7)

    def test_skip_is_refused(self):
        seen = self.seen(TRAINS, "sgd", options=("--on-incident", "skip"))
        self.assert_exit(seen, 2)
        self.assertEqual(seen.stdout, "")
        self.assertIn("asks nobody; write --on-incident continue or stop", seen.stderr)

    def test_step_that_is_given_up(self):
        seen = self.seen(TRAINS, "leaves_out", 7)
        self.assertEqual(seen.stdout, self.alone(TRAINS, "leaves_out", 7).stdout)
        self.assert_bit_exact(self.one_incident(7))

    def test_error_that_ends_the_program(self):
        alone, seen = self.alone(TRAINS, "raises", 7), self.seen(TRAINS, "raises", 7)
        self.assertLess(alone.returncode, 0)
        self.assert_exit(seen, alone.returncode)
        self.assertEqual(seen.stdout, alone.stdout)
        self.assert_bit_exact(self.one_incident(7))
        manifest = json.loads((self.scratch / "run" / "manifest.json").read_text())
        self.assertEqual(manifest["outcome"], "ended by std::runtime_error: the loss is not finite")


if __name__ == "__main__":
    main()
