"""What a program computes with another model before it calls the one that it trains: teachers, target networks, frozen encoders. It is
the step's beginning, and what goes wrong in it is reported there."""

import shutil

from attached import ALWAYS, AttachTest, main

HEAD = """
import torch
from torch import nn
torch.manual_seed(0)
class Student(nn.Sequential): pass
model = Student(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
class Other(nn.Module):
    def __init__(self, late=100):
        super().__init__()
        self.first, self.last, self.late, self.calls = nn.Linear(8, 16), nn.Linear(16, 4), late, 0
    def encode(self, x):
        self.calls += 1
        h = self.first(x)
        if self.calls == self.late: h = h.abs() + 100
        return self.last(h.exp().log())
    forward = encode
"""


class AsideTest(AttachTest):
    def run_program(self, body, level="watch"):
        script = self.scratch / "program.py"
        script.write_text(HEAD + body)
        shutil.rmtree(self.scratch / "run", ignore_errors=True)
        process = self.observed(script, options=("--level", level, *ALWAYS))
        self.assert_exit(process)
        return process

    def verdict(self, body, level="watch", step=5):
        process = self.run_program(body, level)
        found = self.incidents()
        self.assertTrue(found, process.stderr)
        self.assertEqual(found[0].name, f"step-{step:08d}.r0.h5", process.stderr)
        return self.replay("diagnose", found[0])

    def test_a_teacher_whose_weight_is_bad(self):
        for level in ("watch", "trace"):
            with self.subTest(level):
                verdict = self.verdict("""
teacher = Other().requires_grad_(False)
for step in range(7):
    x = torch.randn(32, 8)
    if step == 5: teacher.last.weight.data[1, 2] = float("nan")
    with torch.no_grad(): target = teacher(x)
    optimizer.zero_grad()
    loss = (model(x) - target).square().mean()
    loss.backward()
    optimizer.step()
""", level, step=4)
                # What is written between an update and the next pass belongs to the step that ended; the line is named.
                self.assertEqual((verdict["cause"], verdict["culprit"]["op"]), ("BAD_SETTING", "aten::fill_"), verdict)

    def test_a_target_network_that_overflows(self):
        # As in public DQN programs: it requires gradients, but no optimizer holds it.
        for level in ("watch", "trace"):
            with self.subTest(level):
                verdict = self.verdict("""
target = Other(late=6)
for step in range(7):
    x, reward = torch.randn(32, 8), torch.rand(32)
    with torch.no_grad():
        value, _ = target(torch.randn(32, 8)).max(dim=1)
        goal = reward + 0.99 * value
    old = model(x).gather(1, torch.zeros(32, 1, dtype=torch.long)).squeeze()
    loss = nn.functional.mse_loss(old, goal)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", level)
                self.assertEqual(verdict["origin"], "op", verdict)
                self.assertEqual(verdict["culprit"]["op"], "aten::exp", verdict)
                self.assertEqual(verdict["culprit"]["module"], "Other", verdict)

    def test_latents_of_a_frozen_encoder_with_noise_on_them(self):
        for grads in ("torch.no_grad()", "torch.enable_grad()"):
            for level in ("watch", "trace"):
                with self.subTest(grads, level=level):
                    verdict = self.verdict(f"""
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Other(late=6)
    def encode(self, x): return self.part(x)
encoder = Encoder().requires_grad_(False)
model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
for step in range(7):
    with {grads}:
        latents = encoder.encode(torch.randn(32, 8)) * 0.18
    noise = torch.randn_like(latents)
    noisy = 0.9 * latents + 0.1 * noise
    loss = (model(noisy) - noise).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", level)
                    self.assertEqual((verdict["origin"], verdict["culprit"]["op"]), ("op", "aten::exp"), verdict)

    def test_an_evaluation_of_another_model_is_no_part_of_the_step(self):
        process = self.run_program("""
other = Other(late=1 << 30).requires_grad_(False)
def evaluate():
    with torch.no_grad():
        return [float(other(1e6 * torch.randn(32, 8)).isfinite().float().mean()) for _ in range(40)]
for step in range(7):
    evaluate()
    x = torch.randn(32, 8)
    if step == 5: x[3, 4] = float("nan")
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
evaluate()
""")
        self.assertEqual([path.name for path in self.incidents()], ["step-00000005.r0.h5"], process.stderr)
        verdict = self.replay("diagnose", self.incidents()[0])
        self.assertEqual(verdict["origin"], "input", verdict)

    def test_weights_are_those_of_a_run_without_the_probe(self):
        body = """
teacher = Other().requires_grad_(False)
for step in range(12):
    x = torch.randn(32, 8)
    with torch.no_grad(): target = teacher(nn.functional.dropout(x))
    optimizer.zero_grad()
    (model(nn.functional.dropout(x)) - target).square().mean().backward()
    optimizer.step()
print([p.double().sum().item().hex() for p in model.parameters()])
"""
        script = self.scratch / "alone.py"
        script.write_text(HEAD + body)
        alone = self.plain(script).stdout.splitlines()[-1]
        for level in ("watch", "trace"):
            self.assertEqual(self.run_program(body, level).stdout.splitlines()[-1], alone, level)


if __name__ == "__main__":
    main()
