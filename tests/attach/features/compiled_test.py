"""What torch.compile made is one region, which is opened: the verdict names the op inside, and no bit of the training changes."""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from attached import AttachTest, main  # noqa: E402

PROGRAM = """
import sys, torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 8)

    def forward(self, x, shift):
        return (self.fc(x).sigmoid() + shift).log().square().mean()

torch.manual_seed(0)
net = Net()
compiled = torch.compile(net)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(5):
    optimizer.zero_grad()
    compiled(torch.randn(6, 4), torch.tensor(-2.0 if step == 3 else 0.5)).backward()
    optimizer.step()
torch.save(net.state_dict(), sys.argv[1])
"""


class CompiledTest(AttachTest):
    def test_the_verdict_names_the_op_in_the_region(self):
        import torch

        program = self.scratch / "train.py"
        program.write_text(PROGRAM)
        self.assert_exit(self.plain(program, "plain.pt"))
        for level in ("watch", "trace"):
            with self.subTest(level):
                process = self.observed(program, f"{level}.pt", run_dir=level, options=("--level", level, "--watch-every", "0"))
                self.assert_exit(process)
                plain, seen = (torch.load(self.scratch / f) for f in ("plain.pt", f"{level}.pt"))
                for name, value in plain.items():
                    self.assertEqual(value.numpy().tobytes(), seen[name].numpy().tobytes(), name)
                snapshot = self.incidents(level)[0]
                self.assertEqual(snapshot.name, "step-00000003.r0.h5")
                self.assertGreater(self.assert_bit_exact(snapshot)["opaque_ops"], 0)
                verdict = self.replay("diagnose", snapshot)
                self.assertEqual((verdict["culprit"]["op"], verdict["cause"]), ("aten::log", "DOMAIN"), verdict)
                self.assertIn("inside a torch.compile region", verdict["explanation"].lower())
                self.assertTrue(any("nanquest::compiled_region" in line for line in verdict["not_tested"]), verdict)

    def test_without_the_compiler_the_op_is_named(self):
        program = self.scratch / "train.py"
        program.write_text(PROGRAM)
        process = self.observed(program, "seen.pt", options=("--level", "watch"), TORCH_COMPILE_DISABLE="1")
        self.assert_exit(process)
        verdict = self.replay("diagnose", self.incidents()[0])
        self.assertEqual(verdict["culprit"]["op"], "aten::log", verdict)


if __name__ == "__main__":
    main()
