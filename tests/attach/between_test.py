"""Bad values that a program computes between an update and its next step: the operation that made them is named where it is on
record, and nothing is called a setting or data that may be neither."""

from attached import ALWAYS, AttachTest, by_day, main

HEAD = """
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(5, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
"""

# As in policy gradients: the last part of a rollout holds one sample.
ADVANTAGES = """
x, advantages = torch.randn(33, 5), torch.randn(33)
for rows in torch.arange(33).split(8):
    a = advantages[rows]
    a = (a - a.mean()) / (a.std() + 1e-8)
    loss = -(model(x[rows])[:, 0] * a).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

# More than what is kept of the time between two steps.
LONG = """    for i in range(600): a = a + 1
"""

# The model is called with what was computed, so it has a name.
DEGREES = """
class Graph(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = model
    def forward(self, adjacency, scale, x):
        return self.inner(scale[:, None] * (adjacency @ (scale[:, None] * x)))
net = Graph()
for step in range(6):
    edges = torch.ones(4, 4)
    if step == 4: edges[2], edges[:, 2] = 0, 0
    scale = edges.sum(1) ** -0.5
    loss = net(edges, scale, torch.randn(4, 5)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

# The infinities of a mask are computed there as well; what fails is the root of a negative number in the step.
MASK = """
for step in range(6):
    keep = torch.ones(4)
    keep[1] = 0
    mask = keep.log()
    y = model(torch.randn(4, 5))[:, 0]
    loss = (torch.softmax(y + mask, 0) * y).sum() + (y.detach() + (10 if step < 4 else -10) + y).sqrt().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


# The sum is finite; NumPy puts the NaN into its memory.
OVERWRITTEN = """
rewards = torch.ones(4)
for step in range(6):
    returns = rewards + step
    if step == 4: returns.numpy()[2] = float("nan")
    loss = -(model(torch.randn(7, 5)).mean() * returns).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


class BetweenTest(AttachTest):
    def verdict(self, body, level, *options):
        script = self.scratch / "program.py"
        script.write_text(HEAD + body)
        self.clear("run")
        process = self.observed(script, options=("--level", level, "--watch-every", "0", *options))
        self.assert_exit(process)
        found = self.incidents()
        self.assertTrue(found, process.stderr)
        self.assertEqual(found[0].name, "step-00000004.r0.h5", process.stderr)
        self.assert_bit_exact(found[0])
        return self.replay("diagnose", found[0])

    def test_the_operation_that_made_them_is_named(self):
        cases = ((ADVANTAGES, "aten::std", "EMPTY_REDUCTION"), (DEGREES, "aten::pow", "DIV_ZERO"))
        # Also where the update is not recorded, and where the step is dropped after it.
        ways = (("trace", *ALWAYS), ("trace", "--keep-percent", "0"), ("watch",))
        for (body, op, cause), (level, *options) in zip(cases * 3, by_day(ways, ways * 2)):
            with self.subTest(op, level=level, options=options):
                verdict = self.verdict(body, level, *options)
                self.assertEqual((verdict["culprit"]["op"], verdict["cause"], verdict["origin"]), (op, cause, "op"), verdict)
                self.assertIn("between the last update and", verdict["explanation"])
                self.assertIn("program.py", " ".join(verdict["culprit"]["stack"]), verdict)

    def test_a_mask_that_was_computed_there_is_not_to_blame(self):
        for level in by_day(("trace",), ("watch",)):
            verdict = self.verdict(MASK, level, *ALWAYS)
            self.assertEqual((verdict["culprit"]["op"], verdict["cause"]), ("aten::sqrt", "DOMAIN"), verdict)

    def test_what_the_host_writes_over_a_result_is_not_its_operations(self):
        for level in by_day(("trace",), ("watch",)):
            verdict = self.verdict(OVERWRITTEN, level, *ALWAYS)
            self.assertEqual((verdict["cause"], verdict["origin"]), ("UNKNOWN", "input"), verdict)
            self.assertIn("1 NaN of 4 elements", verdict["explanation"])

    def test_where_they_are_not_on_record_it_is_left_open(self):
        verdict = self.verdict(ADVANTAGES.replace("    a = (a - a.mean())", LONG + "    a = (a - a.mean())"), "trace")
        self.assertEqual((verdict["origin"], verdict["cause"]), ("input", "UNKNOWN"), verdict)
        self.assertIn("1 NaN of 1 elements", verdict["explanation"])
        self.assertIn("BAD_DATA", verdict["explanation"])


if __name__ == "__main__":
    main()
