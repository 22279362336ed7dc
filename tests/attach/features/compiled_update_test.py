"""An optimizer whose step torch.compile made one region: its updates are seen, judged and left out like others, and the verdict looks
inside. The programs know nothing of the probe."""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from attached import AttachTest, by_day, main, nightly  # noqa: E402

# Step 5 has the fault WHAT; "without": it is not made at all.
PROGRAM = """
import sys, torch
from torch import nn
OUT, WAY, WHAT = sys.argv[1:4]
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
rate = torch.tensor(1e-2)

class Inner(torch.optim.Optimizer):         # Optimizer.step as it is; what it calls is compiled
    def __init__(self, parameters):
        super().__init__(parameters, {"lr": rate})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                write(p, p.grad, group["lr"])

@torch.compile
def write(p, gradient, lr):
    p.sub_(gradient * lr)

optimizer = {"whole": lambda p: torch.optim.AdamW(p, lr=rate), "function": lambda p: torch.optim.SGD(p, lr=rate, momentum=0.9), "method": lambda p: torch.optim.AdamW(p, lr=rate),
             "inner": Inner}[WAY](net.parameters())
model, step = net, optimizer.step
if WAY == "function":
    @torch.compile
    def step():
        optimizer.step()
    model = torch.compile(net)
elif WAY == "method":
    step = optimizer.step = torch.compile(optimizer.step)

def train(batch, target):
    optimizer.zero_grad()
    loss = (model(batch) - target).square().mean()
    loss.backward()
    step()
    return loss

if WAY == "whole":                          # which gives up at `backward`, and goes on behind it
    train = torch.compile(train)
torch.manual_seed(1)
for i in range(8):
    batch, target = torch.randn(16, 8), torch.randn(16, 1)
    if i == 5 and WHAT == "without":
        continue
    if i == 5 and WHAT == "batch":
        batch[3, 2] = float("nan")
    rate.fill_(float("inf") if i == 5 and WHAT == "rate" else 1e-2)
    train(batch, target)
torch.save(net.state_dict(), OUT)
"""


class CompiledUpdateTest(AttachTest):
    def seen(self, way, what, *options):
        (self.scratch / "train.py").write_text(PROGRAM)
        process = self.observed(self.scratch / "train.py", f"seen-{what}.pt", way, what, run_dir=f"{way}-{what}", options=options)
        self.assert_exit(process)
        return process.stderr

    def assert_as_plain(self, way, plain, seen):
        """Bit for bit the weights and buffers of the program alone."""
        import torch

        self.assert_exit(self.plain(self.scratch / "train.py", "plain.pt", way, plain))
        ours = torch.load(self.scratch / f"seen-{seen}.pt")
        for name, value in torch.load(self.scratch / "plain.pt").items():
            self.assertEqual(value.numpy().tobytes(), ours[name].numpy().tobytes(), (way, name))

    @nightly
    def test_steps_are_counted_and_keep_their_bits(self):
        for way in ("method", "inner", "function", "whole"):
            with self.subTest(way):
                self.assertIn("no incident in 8 steps", self.seen(way, "none"))
                self.assert_as_plain(way, "none", "none")

    def test_an_update_that_is_left_out_was_never_made(self):
        for way in by_day(("whole",), ("function", "method")):
            with self.subTest(way):
                self.assertIn("step 5: batch skipped", self.seen(way, "batch", "--on-incident", "skip"))
                self.assert_as_plain(way, "without", "batch")

    def test_a_rate_that_is_infinite_is_found_inside(self):
        for way in by_day(("function",), ("method",)):
            with self.subTest(way):
                self.seen(way, "rate")
                snapshot = self.incidents(f"{way}-rate")[0]
                self.assertEqual(snapshot.name, "step-00000005.r0.h5")
                self.assert_bit_exact(snapshot)
                verdict = self.replay("diagnose", snapshot)
                self.assertEqual((verdict["cause"], verdict["phase"], verdict["culprit"]["op"], verdict["culprit"]["inside"]),
                                 ("BAD_SETTING", "optimizer", {"method": "aten::mul", "function": "aten::neg"}[way],
                                  "nanquest::compiled_region"), verdict)
                self.assertTrue(verdict["fix"] and verdict["fix"]["verified"], verdict)


if __name__ == "__main__":
    main()
