"""Steps of a pause are counted and nothing else; those after it are observed as ever; the training has its own bits throughout."""

import json

from attached import PROGRAMS, AttachTest, by_day, main

PAUSED = PROGRAMS / "paused.py"
LEVELS = ("guard", "trace", "watch")


class PauseTest(AttachTest):
    def assert_paused(self, way, first, last, bad, levels=LEVELS, options=()):
        """Of the bad steps the first lies in the pause."""
        import h5py
        import torch

        self.assert_exit(self.plain(PAUSED, way, first, last, bad, "plain.pt"))
        plain = torch.load(self.scratch / "plain.pt")
        after = int(bad.split(",")[-1])
        for level in levels:
            with self.subTest(f"{way} {level} {options}"):
                run_dir = f"{way}-{level}-{len(options)}"
                process = self.observed(PAUSED, way, first, last, bad, f"{level}.pt", run_dir=run_dir, options=("--level", level, *options))
                self.assert_exit(process)
                manifest = json.loads((self.scratch / run_dir / "manifest.json").read_text())
                self.assertEqual([each["step"] for each in manifest["incidents"]], [after], process.stderr)
                self.assertIn("1 incident in 10 steps", process.stderr)
                with h5py.File(self.scratch / run_dir / "series.r0.h5") as series:
                    rows = [int(step) for step in series["history/scalars/values"][:, 0]]
                self.assertEqual(rows, [step for step in range(10) if not first <= step <= last])
                seen = torch.load(self.scratch / f"{level}.pt")
                for name, value in plain.items():
                    self.assertEqual(value.numpy().tobytes(), seen[name].numpy().tobytes(), name)
                if level != "guard":
                    (file,) = self.incidents(run_dir)
                    self.assertEqual(file.name, f"step-{after:08d}.r0.h5")
                    self.assert_bit_exact(file)
                    self.assertEqual(self.replay("diagnose", file)["cause"], "BAD_DATA")

    def test_a_program_that_leaves_bad_updates_out(self):
        self.assert_paused("leaves-out", 3, 5, "4,7", levels=by_day(("trace",), ("guard", "watch")))

    def test_a_program_that_puts_its_weights_back(self):
        self.assert_paused("puts-back", 3, 5, "4,7")
        # A recording that was asked for is not made in it.
        self.assert_paused("puts-back", 3, 5, "4,7", levels=("trace",), options=("--record-steps", "4"))

    def test_updates_by_hand(self):
        self.assert_paused("by-hand", 3, 5, "4,7", levels=by_day(("trace",), ("watch",)))

    def test_from_before_the_first_step(self):
        self.assert_paused("puts-back", 0, 2, "1,5", levels=by_day(("watch",), ("trace",)))

    def test_a_policy_rests_in_it(self):
        process = self.observed(PAUSED, "puts-back", 3, 5, "4,7", "weights.pt", options=("--on-incident", "stop"))
        self.assert_exit(process, 4)
        self.assertIn("step 7: ", process.stderr)
        process = self.observed(PAUSED, "puts-back", 3, 5, "4,7", "weights.pt", run_dir="skip", options=("--on-incident", "skip"))
        self.assert_exit(process)
        self.assertIn("1 batch skipped", process.stderr)

    def test_weights_that_a_pause_spoiled_are_news_after_it(self):
        script = self.scratch / "spoils.py"
        script.write_text("import torch, nanquest\n"
                          "torch.manual_seed(0)\n"
                          "model = torch.nn.Linear(4, 1)\n"
                          "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
                          "for step in range(8):\n"
                          "    nanquest.pause() if step == 3 else nanquest.resume() if step == 5 else None\n"
                          "    optimizer.zero_grad()\n"
                          "    model(torch.full((2, 4), float('nan') if step == 4 else 1.0)).sum().backward()\n"
                          "    optimizer.step()\n")
        self.assert_exit(self.observed(script))
        (file,) = self.incidents()
        self.assertEqual(file.name, "step-00000005.r0.h5")
        self.assertEqual(self.replay("diagnose", file)["cause"], "BAD_STATE")

    def test_nothing_attached_and_another_thread(self):
        script = self.scratch / "calls.py"
        script.write_text("import sys, nanquest\n"
                          "with nanquest.pause():\n    nanquest.resume()\n"
                          "assert 'torch' not in sys.modules\n")
        self.assert_exit(self.plain(script))
        script.write_text("import threading, torch, nanquest\n"
                          "nanquest.attach(run_dir='threads', level='watch')\n"
                          "model = torch.nn.Linear(4, 1)\n"
                          "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
                          "for step in range(4):\n"
                          "    if step == 1:\n"
                          "        other = threading.Thread(target=nanquest.pause); other.start(); other.join()\n"
                          "    optimizer.zero_grad()\n"
                          "    model(torch.full((2, 4), float('nan') if step == 2 else 1.0)).sum().backward()\n"
                          "    optimizer.step()\n")
        process = self.plain(script)
        self.assert_exit(process)
        self.assertIn("work only on the training thread", process.stderr)
        self.assertEqual([file.name for file in self.incidents("threads")], ["step-00000002.r0.h5"])


if __name__ == "__main__":
    main()
