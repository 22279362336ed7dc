"""Whose a bad value is that the step did not compute, which ops are the optimizer's, and what a step leaves behind: in
programs that know nothing of the probe."""

import shutil

from attached import AttachTest, by_day, main

HEAD = """
import torch
torch.manual_seed(0)
NAN, INF = float("nan"), float("inf")
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
"""


class OutsideTest(AttachTest):
    def run_program(self, body, level, *more):
        script = self.scratch / "program.py"
        script.write_text(HEAD + body)
        shutil.rmtree(self.scratch / "run", ignore_errors=True)
        process = self.observed(script, options=("--level", level, "--keep-percent", "100", *more))
        self.assert_exit(process)
        return process

    def verdict(self, body, step=4, level="watch"):
        process = self.run_program(body, level)
        found = self.incidents()
        self.assertTrue(found, process.stderr)
        self.assertEqual(found[0].name, f"step-{step:08d}.r0.h5", process.stderr)
        return self.replay("diagnose", found[0])

    def verdict_of_the_next(self, body, step=4, level="watch"):
        """Of the step that reads what the incident of the step before left behind."""
        process = self.run_program(body, level, "--record-steps", str(step))
        self.assertEqual([p.name for p in self.incidents()], [f"step-{step - 1:08d}.r0.h5"], process.stderr)
        return self.replay("diagnose", self.scratch / "run" / "recordings" / f"step-{step:08d}.r0.h5")

    def assert_silent(self, body, level):
        process = self.run_program(body, level)
        self.assertEqual(self.incidents(), [], process.stderr)

    def test_targets_and_masks_that_the_model_is_not_called_with(self):
        for name, line in (("target", "loss = (y - target).square().mean()"),
                           ("weights", "loss = ((y - 1).square() * target).mean()")):
            for level in by_day(("trace",), ("watch",)):
                with self.subTest(name, level=level):
                    verdict = self.verdict(f"""
for step in range(6):
    target = torch.randn(32, 1)
    if step == 4: target[3] = NAN
    optimizer.zero_grad()
    y = model(torch.randn(32, 8))
    {line}
    loss.backward()
    optimizer.step()
""", level=level)
                    self.assertEqual((verdict["origin"], verdict["phase"]), ("input", "input"), verdict)
                    self.assertIn("tensor first read by aten::", verdict["culprit"]["tensor"], verdict)
                    self.assertIn("argument other", verdict["culprit"]["tensor"], verdict)

    def test_a_frozen_weight_that_gets_other_memory_keeps_its_name(self):
        # late: the copy is made when it is first needed, within a forward pass without gradients
        for level, late in (("watch", False), ("trace", False), ("trace", True)):
            with self.subTest(level, late=late):
                verdict = self.verdict_of_the_next(f"""
import copy
class Pair(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.online, self.slow = torch.nn.Linear(8, 4), None
        if not {late}: self.copy()
    def copy(self):
        self.slow = copy.deepcopy(self.online).requires_grad_(False)
    def forward(self, x):
        if self.slow is None: self.copy()
        with torch.no_grad(): z = self.slow(x)
        return (self.online(x) - z - 1).square().mean()
pair = Pair()
optimizer = torch.optim.SGD(pair.online.parameters(), lr=0.01)
for step in range(6):
    optimizer.zero_grad()
    pair(torch.randn(32, 8)).backward()
    optimizer.step()
    for a, b in zip(pair.online.parameters(), pair.slow.parameters()):
        b.data = b.data * 0.9 + a.data * (NAN if step == 3 else 0.1)
""", level=level)
                said = (verdict["cause"], verdict["origin"], verdict["culprit"]["tensor"])
                self.assertIn(said, [("BAD_STATE", "parameter", f"slow.{key}") for key in ("weight", "bias")], verdict)

    def test_weights_that_numpy_made(self):
        """Averaged over no clients: NaN that no operation of PyTorch computed, loaded into a model or its momenta."""
        ways = {
            "load": "model.load_state_dict({k: torch.from_numpy(np.asarray(v * (NAN if step == 4 else 1))) for k, v in numbers(model).items()})",
            "copy": "model[3].weight.data.copy_(torch.from_numpy(numbers(model)['3.weight'] * np.float32(NAN if step == 4 else 1)))",
            "list": "model[3].weight.data.copy_(torch.tensor([[NAN if step == 4 else 0.1] * 16]))",
            "momentum": "for s in optimizer.state.values(): s['momentum_buffer'].copy_(torch.from_numpy(s['momentum_buffer'].numpy() * "
                        "(np.float32(NAN) if step == 4 else np.float32(1))))",
        }
        for name, line in ways.items():
            for level in by_day(("trace",), ("watch",)):
                with self.subTest(name, level=level):
                    self.run_program(f"""
import numpy as np
def numbers(net):
    return {{k: v.detach().numpy().copy() for k, v in net.state_dict().items()}}
for step in range(6):
    {line}
    optimizer.zero_grad()
    model(torch.randn(32, 8)).square().mean().backward()
    optimizer.step()
""", level)
                    verdict = self.replay("diagnose", self.incidents()[0])
                    self.assertEqual(verdict["cause"], "BAD_STATE", verdict)
                    self.assertIn(verdict["origin"], ("parameter", "buffer", "optimizer_state"), verdict)

    def test_memory_that_was_written_in_part_or_not_at_all(self):
        """New memory that is filled with NaN and copied into a weight: whether nobody wrote there, or NumPy did."""
        ways = {"nobody": ("", ["UNINITIALIZED"]),
                "numpy": ("made.numpy()[:] = NAN", ["BAD_STATE", "UNINITIALIZED"])}
        for name, (line, claimed) in ways.items():
            for level in by_day(("trace",), ("watch",)):
                with self.subTest(name, level=level):
                    self.run_program(f"""
torch.use_deterministic_algorithms(True, warn_only=True)
for step in range(6):
    made = torch.empty(1, 16)
    {line or 'pass'}
    if step != 4: made.fill_(0.1)
    model[3].weight.data.copy_(made)
    optimizer.zero_grad()
    model(torch.randn(32, 8)).square().mean().backward()
    optimizer.step()
""", level)
                    verdict = self.replay("diagnose", self.incidents()[0])
                    self.assertEqual(sorted(claim["cause"] for claim in verdict["claims"]), claimed, verdict)
                    self.assertEqual(verdict["cause"], claimed[0] if len(claimed) == 1 else "UNKNOWN", verdict)

    def test_bounds_that_are_infinite_on_purpose(self):
        """What lies beyond an infinite bound is thrown away; its derivative is not."""
        bounds = {
            "where": "torch.where(y > upper, (y - upper) ** 2, zero)",
            "masked": "((y - upper) ** 2).masked_fill(y <= upper, 0.0)",
        }
        for name, excess in bounds.items():
            for level in by_day(("trace",), ("watch",)):
                with self.subTest(name, level=level):
                    verdict = self.verdict(f"""
for step in range(6):
    upper, zero = torch.full((32, 1), 0.1), torch.zeros(32, 1)
    if step == 4: upper[3] = INF
    y = model(torch.randn(32, 8))
    loss = y.square().mean() + ({excess}).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", level=level)
                    self.assertEqual((verdict["cause"], verdict["origin"], verdict["phase"]), ("UNSELECTED_BRANCH", "op", "backward"), verdict)

    def test_an_infinite_target_is_data(self):
        verdict = self.verdict("""
for step in range(6):
    target = torch.randn(32, 1)
    if step == 4: target[3] = INF
    loss = torch.nn.functional.huber_loss(model(torch.randn(32, 8)), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", level="trace")
        self.assertEqual((verdict["cause"], verdict["origin"]), ("BAD_DATA", "input"), verdict)

    def test_a_mask_of_infinities_is_passed_over(self):
        self.assert_silent("""
mask = torch.full((16, 16), -INF).triu(1)
for step in range(6):
    optimizer.zero_grad()
    y = model(torch.randn(16, 8))
    loss = (torch.softmax(y @ y.T + mask, 1) @ y).square().mean()
    loss.backward()
    optimizer.step()
""", "watch")

    def test_a_buffer_that_was_replaced_by_assignment(self):
        verdict = self.verdict_of_the_next("""
class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.model = model
        self.register_buffer("scale", torch.ones(8))
    def forward(self, x):
        return self.model(x * self.scale)
net = Scaled()
for step in range(6):
    net.scale = torch.ones(8)
    if step == 4: net.scale[2] = NAN
    optimizer.zero_grad()
    loss = net(torch.randn(32, 8)).square().mean()
    loss.backward()
    optimizer.step()
""")
        self.assertEqual((verdict["origin"], verdict["culprit"]["tensor"]), ("buffer", "scale"), verdict)

    def test_a_scale_that_is_no_scale(self):
        for value in ("0.0", "INF", "NAN"):
            for level in by_day(("trace",), ("watch",)):
                with self.subTest(value, level=level):
                    verdict = self.verdict(f"""
scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
for step in range(6):
    optimizer.zero_grad()
    if step == 4: scaler._scale.fill_({value})
    loss = model(torch.randn(32, 8)).square().mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
""", level=level)
                    self.assertEqual((verdict["origin"], verdict["phase"]), ("loss_scale", "input"), verdict)

    def test_a_gradient_from_before_the_step(self):
        for level in by_day(("trace",), ("watch",)):
            with self.subTest(level):
                verdict = self.verdict("""
for step in range(6):
    optimizer.zero_grad(set_to_none=False)
    if step == 4: model[3].weight.grad[0, 3] = NAN
    loss = model(torch.randn(32, 8)).square().mean()
    loss.backward()
    optimizer.step()
""", level=level)
                self.assertEqual((verdict["origin"], verdict["culprit"]["tensor"]), ("gradient", "3.weight"), verdict)

    def test_updates_by_hand_are_the_optimizers(self):
        updates = {
            "sgd": "for p in model.parameters(): p.data -= 0.1 * (p.grad / zero)",
            "no_grad": "with torch.no_grad():\n        for p in model.parameters(): p -= 0.1 * (p.grad / zero)",
            "foreach": "torch._foreach_sub_([p.data for p in model.parameters()], "
                       "torch._foreach_mul([p.grad / zero for p in model.parameters()], 0.1))",
            "clip": "norm = sum(p.grad.square().sum() for p in model.parameters()).sqrt() * zero\n"
                    "    for p in model.parameters(): p.data -= 0.1 * p.grad / norm",
        }
        for name, update in updates.items():
            with self.subTest(name):
                verdict = self.verdict(f"""
for step in range(6):
    zero = torch.tensor(0.0 if step == 4 else 1.0)
    model.zero_grad()
    loss = model(torch.randn(32, 8)).square().mean()
    loss.backward()
    {update}
""", level="trace")
                self.assertEqual((verdict["phase"], verdict["origin"]), ("optimizer", "op"), verdict)

    def test_a_skipped_step_that_leaves_a_bad_buffer(self):
        body = """
scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
model.register_buffer("norms", torch.zeros(()))
for step in range(8):
    optimizer.zero_grad()
    y = model(torch.randn(32, 8))
    loss = y.square().mean() * (1e6 if step == 4 else 1)
    if step == 4: scaler._scale.fill_(3e38)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = sum(p.grad.square().sum() for p in model.parameters()).sqrt()
    {average}
    scaler.step(optimizer)
    scaler.update()
"""
        for level in by_day(("trace",), ("watch",)):
            with self.subTest(level):
                process = self.run_program(body.format(average="model.norms.mul_(0.9).add_(norm, alpha=0.1)"), level)
                self.assertEqual([p.name for p in self.incidents()], ["step-00000004.r0.h5"], process.stderr)
                self.assertIn("buffer norms", process.stderr)
                self.assertIn("left out", process.stderr)
                self.assert_silent(body.format(average="if torch.isfinite(norm): model.norms.lerp_(norm, 0.1)"), level)

    def test_running_statistics_that_overflow(self):
        body = """
scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
side = torch.nn.BatchNorm1d(8)
model.side = side
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.side = model, side
    def forward(self, x, z):
        y = self.body[:4](x)
        return y + 0 * self.side(z).clamp(-1, 1).nan_to_num().mean()
net = Net()
for step in range(8):
    optimizer.zero_grad()
    z = torch.randn(32, 8)
    if step == 4: z[3, 2] = {value}
    loss = net(torch.randn(32, 8), z).square().mean() * (1e6 if step == 4 else 1)
    if step == 4: scaler._scale.fill_({scale})
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
"""
        for level in by_day(("trace",), ("watch",)):
            for scale in ("3e38", "8.0"):
                with self.subTest(level, scale=scale):
                    process = self.run_program(body.format(value="3e38", scale=scale), level)
                    self.assertEqual([p.name for p in self.incidents()], ["step-00000004.r0.h5"], process.stderr)
            self.assert_silent(body.format(value="1.0", scale="3e38"), level)


if __name__ == "__main__":
    main()
