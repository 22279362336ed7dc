"""Steps that are requested become files, good or bad, and come back bit for bit."""

import subprocess

from attached import BIN, PROGRAMS, AttachTest, main

MLP, HABITS = PROGRAMS / "mlp.py", PROGRAMS / "habits.py"


def modules_of(file):
    """Paths of the modules in which ops ran."""
    import h5py
    with h5py.File(file) as snapshot:
        text, ends = snapshot["strings/bytes"][:].tobytes(), snapshot["strings/offsets"][:]
        return {text[ends[n]:ends[n + 1]].decode() for n in snapshot["modules/path"][:]}


class RecordTest(AttachTest):
    def recordings(self, run_dir="run"):
        return sorted((self.scratch / run_dir / "recordings").glob("step-*.h5"))

    def test_steps_that_were_asked_for(self):
        for level, basis in (("watch", "every_output"), ("trace", "survivors")):
            with self.subTest(level):
                process = self.observed(MLP, "adamw-foreach", 99, 0, run_dir=level,
                                        options=("--level", level, "--record-steps", "4,6"))
                self.assert_exit(process)
                self.assertEqual([p.name for p in self.recordings(level)], ["step-00000004.r0.h5", "step-00000006.r0.h5"])
                self.assertEqual(self.incidents(level), [])
                self.assertIn(f"nanquest-replay {level}/recordings/step-00000004.r0.h5", process.stderr)
                for file in self.recordings(level):
                    self.assertEqual(self.assert_bit_exact(file)["basis"], basis)

    def test_replay_finds_nothing_in_a_good_step(self):
        self.assert_exit(self.observed(MLP, "sgd", 99, 0, options=("--level", "watch", "--record-steps", "2")))
        replay = subprocess.run([str(BIN / "nanquest-replay"), str(self.recordings()[0])], text=True, capture_output=True,
                                timeout=300)
        self.assert_exit(replay, 0)
        self.assertIn("no harmful NaN or Inf", replay.stdout)

    def test_a_bad_step_has_one_file(self):
        process = self.observed(MLP, "sgd", 4, "nan", options=("--level", "watch", "--record-steps", "3,4"))
        self.assert_exit(process)
        self.assertEqual([p.name for p in self.recordings()], ["step-00000003.r0.h5"])
        self.assertEqual(self.incidents()[0].name, "step-00000004.r0.h5")

    def test_from_inside(self):
        script = self.scratch / "inside.py"
        script.write_text("import nanquest, torch\n"
                          "assert not nanquest.record()\n"
                          "assert nanquest.attach(run_dir='inside', level='watch')\n"
                          "assert nanquest.record()\n"
                          "model = torch.nn.Linear(3, 1)\n"
                          "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
                          "for step in range(4):\n"
                          "    if step == 3:\n"
                          "        assert nanquest.record()\n"
                          "    loss = model(torch.randn(2, 3)).sum()\n"
                          "    if step == 1:\n"
                          "        assert nanquest.record()\n"
                          "    loss.backward()\n"
                          "    optimizer.step()\n"
                          "    optimizer.zero_grad()\n")
        self.assert_exit(self.plain(script))
        names = [p.name for p in self.recordings("inside")]
        self.assertEqual(names, [f"step-{step:08d}.r0.h5" for step in (0, 1, 3)])
        for file in self.recordings("inside"):
            self.assert_bit_exact(file)

    def test_what_hooks_of_saved_tensors_compute_is_on_record(self):
        """So a change before it reaches the backward pass, and a fix can be tried."""
        self.assert_exit(self.plain(PROGRAMS / "offloaded.py", "plain.pt"))
        plain = (self.scratch / "plain.pt").read_bytes()
        for level in ("trace", "watch"):
            with self.subTest(level):
                self.assert_exit(self.observed(PROGRAMS / "offloaded.py", "plain.pt", run_dir=level, options=("--level", level)))
                self.assertEqual((self.scratch / "plain.pt").read_bytes(), plain)
                self.assert_bit_exact(self.incidents(level)[0])
                verdict = self.replay("diagnose", self.incidents(level)[0])
                self.assertEqual(verdict["cause"], "BAD_DATA", verdict)
                self.assertTrue(verdict["fix"] and verdict["fix"]["verified"], verdict["counterfactuals"])

    def test_what_is_added_between_steps_gets_its_name(self):
        import h5py

        script = self.scratch / "grows.py"
        script.write_text("""
import torch
from torch import nn

class Adapted(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner, self.down, self.norm = inner, nn.Linear(4, 2), nn.BatchNorm1d(2)
        self.down.requires_grad_(False)  # no optimizer tells of it
        self.up = nn.Linear(2, 4)

    def forward(self, x):
        return self.inner(x) + self.up(self.norm(self.down(nn.Dropout(0.1)(x))))

model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(8):
    if step == 3:
        model[0] = Adapted(model[0])
        optimizer.add_param_group({"params": [*model[0].norm.parameters(), *model[0].up.parameters()]})
    if step == 5:
        model[1] = nn.Sequential(nn.BatchNorm1d(4, affine=False), model[1])
    model(torch.randn(6, 4)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
""")
        for level in ("watch", "trace"):
            with self.subTest(level):
                self.assert_exit(self.observed(script, run_dir=level, options=("--level", level, "--record-steps", "3,5")))
                first, last = self.recordings(level)
                with h5py.File(first) as file:
                    self.assertEqual({"0.down.weight", "0.norm.weight", "0.up.bias"} - set(file["parameters"]), set())
                    self.assertIn("0.norm.running_mean", file["buffers"])
                with h5py.File(last) as file:
                    self.assertIn("1.0.running_var", file["buffers"])
                for file in (first, last):
                    self.assert_bit_exact(file)
                self.assertEqual({"0.inner", "0.norm", "1.0"} - modules_of(last), set())

    def test_usage(self):
        for wrong in ("x", "-1", "1.5"):
            refused = self.nanquest("run", f"--record-steps={wrong}", "--", "true")
            self.assert_exit(refused, 2)
            self.assertIn(wrong, refused.stderr)
        guard = self.nanquest("run", "--level", "guard", "--record-steps", "1", "--", "true")
        self.assert_exit(guard, 2)
        self.assertIn("level trace or watch", guard.stderr)


if __name__ == "__main__":
    main()
