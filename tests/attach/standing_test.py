"""Level trace between the watched steps: the standing trace records, and keeps the last steps for what updates did."""

import hashlib
import json
import os
import re
import unittest.mock

from attached import PROGRAMS, AttachTest, by_day, main, stands

UPDATE, HEAVY = PROGRAMS / "update.py", PROGRAMS / "heavy.py"
# The first three steps are watched, and after them none that is no incident. Copying may cost what it wants.
STANDING = ("--level", "trace", "--watch-every", "0", "--keep-percent", "1000000")
# Copying may cost nothing.
DEAR = ("--level", "trace", "--watch-every", "0", "--keep-percent", "0")


class StandingTest(AttachTest):
    def run_update(self, what, bad, steps, *more, options=STANDING):
        process = self.observed(UPDATE, what, bad, steps, *more, options=options)
        self.assert_exit(process)
        recorded, memory = process.stdout.splitlines()
        return process, json.loads(recorded)["standing_steps"], json.loads(memory)

    def assert_origin(self, what, bad, op, options=STANDING, **verdict):
        """The update of step `bad` did it, the next step showed it."""
        process, _, _ = self.run_update(what, bad, bad + 2, options=options)
        found = self.incidents()
        self.assertTrue(found, process.stderr)
        self.assertEqual(found[0].name, f"step-{bad:08d}.r0.h5")
        self.assertIn(f"nanquest: step {bad + 1}: ", process.stderr)
        self.assertIn(f"the update of step {bad} spoiled ", process.stderr)
        proof = self.assert_bit_exact(found[0])
        self.assertEqual(proof["basis"], "survivors")
        said = self.replay("diagnose", found[0])
        self.assertEqual(said["step"], bad)
        self.assertEqual(said["phase"], "optimizer", said)
        self.assertEqual(said["culprit"]["op"], op, said)
        for key, value in verdict.items():
            self.assertEqual(said[key], value, said)
        return said

    def test_an_epsilon_that_fp16_does_not_have(self):
        self.assert_origin("eps", 8, "aten::addcdiv_")

    def test_an_epsilon_that_fp16_does_not_have_foreach(self):
        self.assert_origin("eps-foreach", 8, "aten::_foreach_addcdiv_")

    def test_an_infinite_rate(self):
        self.assert_origin("lr", 9, "aten::add_")

    def test_the_update_with_an_infinite_rate_is_kept_whatever_that_costs(self):
        process, _, _ = self.run_update("lr", 9, 11, options=DEAR)
        found = self.incidents()
        self.assertEqual([path.name for path in found], ["step-00000009.r0.h5"], process.stderr)
        said = self.replay("diagnose", found[0])
        self.assertEqual((said["cause"], said["origin"], said["step"]), ("BAD_SETTING", "setting", 9), said)

    def test_the_first_update_with_another_setting_is_kept_whatever_that_costs(self):
        self.assert_origin("eps", 8, "aten::addcdiv_", options=DEAR)

    def test_the_first_update_of_another_optimizer_is_kept_whatever_that_costs(self):
        self.assert_origin("eps-second", 8, "aten::addcdiv_", options=DEAR)

    def test_the_first_update_with_gradients_of_zeros_is_kept_whatever_that_costs(self):
        self.assert_origin("clip", 7, "aten::div", options=DEAR)

    def test_a_clip_by_a_norm_that_is_nan(self):
        self.assert_origin("clip", 7, "aten::div")

    def test_a_state_that_did_no_harm_is_not_blamed(self):
        process, _, _ = self.run_update("twice", 8, 10)
        self.assertEqual(self.incidents()[0].name, "step-00000009.r0.h5", process.stderr)
        self.assert_bit_exact(self.incidents()[0])
        said = self.replay("diagnose", self.incidents()[0])
        self.assertEqual((said["phase"], said["culprit"]["op"]), ("forward", "aten::mul"), said)

    def test_an_overflow_far_from_any_watched_step(self):
        process, standing, _ = self.run_update("overflow", 40, 42)
        self.assertGreaterEqual(standing, 37)
        snapshot = self.incidents()[0]
        self.assertEqual(snapshot.name, "step-00000040.r0.h5", process.stderr)
        proof = self.assert_bit_exact(snapshot)
        self.assertEqual(proof["basis"], "survivors")
        self.assertGreater(proof["outputs_compared"], 5)
        said = self.replay("diagnose", snapshot)
        self.assertEqual(said["cause"], "FP16_OVERFLOW", said)
        self.assertEqual((said["phase"], said["culprit"]["module"]), ("forward", "hidden"), said)
        self.assertTrue(any("update.py" in frame for frame in said["culprit"]["stack"]), said["culprit"])

    def test_without_kept_steps_the_update_is_gone(self):
        process, standing, _ = self.run_update("lr", 9, 11, options=(*STANDING, "--keep-steps", "0"))
        self.assertGreater(standing, 5)
        self.assertEqual(self.incidents()[0].name, "step-00000010.r0.h5", process.stderr)
        self.assert_bit_exact(self.incidents()[0])
        self.assertEqual(self.replay("diagnose", self.incidents()[0])["cause"], "BAD_STATE")

    def test_steps_with_ops_that_can_not_be_run_again(self):
        script = self.scratch / "sparse.py"
        script.write_text("import nanquest, torch\n"
                          "assert nanquest.attach(level='trace', run_dir='run', watch_first=0, watch_every=0, record_steps=(9, 40))\n"
                          "table = torch.nn.Embedding(50, 4, sparse=True)\n"
                          "optimizer = torch.optim.SGD(table.parameters(), lr=0.1)\n"
                          "for step in range(42):\n"
                          "    table.sparse = step < 10\n"
                          "    loss = table(torch.randint(0, 50, (6,))).square().sum()\n"
                          "    loss.backward()\n"
                          "    optimizer.step()\n"
                          "    optimizer.zero_grad()\n"
                          "print(torch.ops.nanquest.standing_steps())\n")
        process = self.plain(script)
        self.assert_exit(process)
        self.assertNotIn(" off", process.stderr)
        self.assertEqual(int(process.stdout), 42)
        for step in (9, 40):
            file = self.scratch / "run" / "recordings" / f"step-{step:08d}.r0.h5"
            self.assertGreater(self.assert_bit_exact(file)["outputs_compared"], 2)
            self.assertTrue(stands(file))

    def test_it_listens_again_after_an_update_that_failed(self):
        """These updates are not kept, so nothing is observed while the optimizer runs; one of them never reports that it is over."""
        script = self.scratch / "failing.py"
        script.write_text("import nanquest, torch\n"
                          "assert nanquest.attach(level='trace', run_dir='run', watch_first=0, watch_every=0, keep_steps=0)\n"
                          "class Failing(torch.optim.SGD):\n"
                          "    def step(self):\n"
                          "        super().step()\n"
                          "        if step == 5:\n"
                          "            raise RuntimeError('not in step 5')\n"
                          "torch.manual_seed(0)\n"
                          "model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 1))\n"
                          "optimizer = Failing(model.parameters(), lr=0.1)\n"
                          "for step in range(8):\n"
                          "    optimizer.zero_grad()\n"
                          "    model(torch.randn(3, 4) * (1e30 if step == 6 else 1)).square().mean().backward()\n"
                          "    try:\n"
                          "        optimizer.step()\n"
                          "    except RuntimeError:\n"
                          "        pass\n")
        process = self.plain(script)
        self.assert_exit(process)
        self.assertNotIn(" off", process.stderr)
        file = sorted((self.scratch / "run" / "incidents").glob("*.h5"))[0]
        self.assertEqual(file.name, "step-00000006.r0.h5")
        self.assertTrue(stands(file))
        self.assertGreater(self.assert_bit_exact(file)["outputs_compared"], 5)
        said = self.replay("diagnose", file)
        self.assertEqual((said["phase"], said["culprit"]["op"]), ("forward", "aten::pow"), said)

    def watched(self, steps, *options):
        """Numbers of the steps after the first three that a program watches."""
        self.assert_exit(self.observed(PROGRAMS / "watched_steps.py", steps, "found", options=options))
        found = json.loads((self.scratch / "found.0").read_text())
        self.assertEqual(found[:3], [0, 1, 2])
        return found[3:]

    def test_steps_are_watched_as_often_as_the_share_pays_for(self):
        for option, number, wanted in by_day((("--watch-percent", 100000, [50, 100, 150]), ("--watch-every", 60, [60, 120])),  # one in fifty at most
                                             (("--watch-percent", 0, []), ("--watch-every", 0, []))):
            self.assertEqual(self.watched(160, option, number), wanted, (option, number))
        found = self.watched(1030)  # by what it costs here, which is not known
        self.assertTrue(any(all(step % every == 0 for step in found) for every in (50, 100, 200, 500, 1000)), found)

    def test_memory_does_not_grow(self):
        _, standing, (third, end) = self.run_update("none", -1, 300)
        self.assertEqual(standing, 297)
        self.assertEqual(end[1], third[1])  # bytes of the standing trace
        self.assertLess(end[0] - third[0], 128 << 10)  # the history's ring of rows is full by then

    def test_training_is_what_it_is_without(self):
        digest = {}
        for what in by_day(("overflow",), ("none", "eps-foreach")):
            for kind in ("plain", "observed"):
                weights = self.scratch / f"{what}-{kind}.pt"
                if kind == "plain":
                    self.assert_exit(self.plain(UPDATE, what, -1, 20, weights))
                else:
                    _, standing, _ = self.run_update(what, -1, 20, weights)
                    self.assertEqual(standing, 17)
                import torch
                state = torch.load(weights)
                digest[kind] = {k: hashlib.sha256(v.contiguous().view(torch.uint8).numpy().tobytes()).hexdigest()
                                for k, v in state.items()}
            self.assertEqual(digest["plain"], digest["observed"])


    def test_memory_of_kept_updates_is_said_and_can_be_spared(self):
        # What malloc leaves unused between a program's own tensors, which come and go, varies by hundreds of MB.
        with unittest.mock.patch.dict(os.environ, MALLOC_MMAP_THRESHOLD_="1000000"):
            self.check_memory_of_kept_updates()

    def check_memory_of_kept_updates(self):
        plain = int(self.plain(HEAVY).stdout)
        kept = self.observed(HEAVY, run_dir="kept", options=("--keep-percent", "1000"))
        said = re.search(r"up to ([\d.]+) (MB|GB) of the ", kept.stderr)
        self.assertTrue(said, kept.stderr)
        room = float(said.group(1)) * (1000 if said.group(2) == "GB" else 1)
        self.assertLess(int(kept.stdout), plain + room + 100)
        for spare in by_day((("--keep-memory-percent", "0"),), (("--keep-steps", "0"),)):
            with self.subTest(spare):
                none = self.observed(HEAVY, run_dir=spare[0].strip("-"), options=spare)
                self.assertNotIn("up to", none.stderr)
                self.assertLess(int(none.stdout), plain + 150)
                self.assertLess(int(none.stdout), int(kept.stdout) - 200)

if __name__ == "__main__":
    main()
