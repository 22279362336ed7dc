"""Where a bad value from outside comes from: it is called data or a state only where the record says so."""

from attached import AttachTest, by_day, main

MODEL = """
import io
import numpy as np
import torch
torch.manual_seed(0)
NAN = float("nan")


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = torch.nn.Linear(8, 1)
        self.register_buffer("kept", torch.ones(8))
        self.register_buffer("freq", torch.ones(8), persistent=False)

    def forward(self, x):
        return self.mix(x * self.kept * self.freq)


def train(net, first, last):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for step in range(first, last):
        optimizer.zero_grad()
        net(torch.randn(16, 8)).square().mean().backward()
        optimizer.step()


def saved(net):
    disk = io.BytesIO()
    torch.save(net.state_dict(), disk)
    disk.seek(0)
    return torch.load(disk)


def empty_net():
    with torch.device("meta"):
        net = Net()
    return net.to_empty(device="cpu")
"""

# A second job in the same process, whose model is new in step 6.
RESUMED = """
torch.use_deterministic_algorithms({deterministic})
net = Net()
train(net, 0, 6)
state = saved(net)
net = {made}
{change}
net.load_state_dict(state)
{after}
train(net, 6, 9)
"""

FIRST = """
torch.use_deterministic_algorithms({deterministic})
state = saved(Net())
net = {made}
{change}
net.load_state_dict(state)
{after}
train(net, 0, 3)
"""

# (program, its parts, the step of the incident, …). NumPy leaves no trace in the record.
OPEN = {
    "nobody_knows": (FIRST, ("False", "Net()", "", "net.freq.numpy()[:] = NAN"), 0, ("BAD_STATE", "UNINITIALIZED")),
}
SHOWN = {
    "loaded": (FIRST, ("False", "Net()", "state['kept'][3] = NAN", ""), 0, "kept"),
    "loaded_after_to_empty": (FIRST, ("True", "empty_net()", "state['mix.weight'][0, 3] = NAN", "net.freq.fill_(1)"), 0, "mix.weight"),
    "used_before": ("net = Net()\ntrain(net, 0, 6)\nnet.freq.numpy()[2] = NAN\ntrain(net, 6, 9)\n", ("", "", "", ""), 6, "freq"),
}

OWN = {
    "loaded": (RESUMED, {"deterministic": False, "made": "Net()", "change": "state['kept'][3] = NAN", "after": ""}, "kept"),
    "loaded_in_part": (RESUMED, {"deterministic": True, "made": "empty_net()", "change": "state['mix.weight'][0, 3] = NAN", "after": "net.freq.fill_(1)"}, "mix.weight"),
    "used_before": ("net = Net()\ntrain(net, 0, 6)\nnet.freq[2] = NAN\ntrain(net, 6, 9)\n", {}, "freq"),
}

OWN = """
class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        with np.errstate(all="ignore"):
            y = x.detach().numpy() / np.float32(0 if bad else 2)
            return torch.from_numpy(y - y if bad else y)

    @staticmethod
    def backward(ctx, g):
        return g * 2


net, bad = Net(), False
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(9):
    bad = step == 6
    optimizer.zero_grad()
    torch.tanh(Own.apply(net(torch.randn(16, 8)))).square().mean().backward()
    optimizer.step()
"""

# NumPy and numbers of Python leave no operation on record. `before` and `after` the update of step 6, and how its `loss` goes on.
OUTSIDE = """
net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=0.01, foreach=False)
for step in range(9):
    optimizer.zero_grad()
    x = torch.randn(16, 8)
    loss = net(x).square().mean() {loss}
    loss.backward()
    if step == 6:
        {before}
    optimizer.step()
    if step == 6:
        {after}
"""
BY_NUMPY = "net.mix.weight.grad = torch.from_numpy(net.mix.weight.grad.numpy() * np.float32({}))"
MOMENTS = (
    "[optimizer.state[p].update(exp_avg_sq=torch.from_numpy(optimizer.state[p]['exp_avg_sq'].numpy() * NAN)) for p in net.parameters()]"
)
# {name: (what is put into OUTSIDE, cause, origin, tensor)}
BETWEEN = {
    "gradient": (("", BY_NUMPY.format("NAN"), "pass"), "UNKNOWN", "gradient", "mix.weight"),
    "weight": (("", "pass", "net.mix.bias.data = torch.tensor([NAN])"), "UNKNOWN", "buffer", "net.mix.bias"),
    "moments": (("", MOMENTS, "pass"), "BAD_STATE", "optimizer_state", "exp_avg_sq.mix.weight"),
    # Neighbours: NumPy writes there too, but an operation makes the NaN.
    "moments_beside": (("/ float(step != 6)", MOMENTS.replace("NAN", "np.float32(0.5)"), "pass"), "DIV_ZERO", "op", ""),
    "weight_beside": (("/ float(step != 6)", "pass", "net.mix.bias.data = torch.tensor([0.5])"), "DIV_ZERO", "op", ""),
}


# A table of word vectors from a file, with one row of NaN among 96, which is first looked up in step 5.
TABLE = """
torch.use_deterministic_algorithms({deterministic})
vectors = np.random.default_rng(0).standard_normal((96, 8)).astype(np.float32)
vectors[90] = NAN
words, net = torch.nn.Embedding.from_pretrained(torch.from_numpy(vectors)), Net()
model = torch.nn.Sequential(words, net)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(9):
    optimizer.zero_grad()
    model((torch.arange(16) + 15 * step) % 96).square().mean().backward()
    optimizer.step()
"""

# The bad batch is the second of four, and freed before the update.
ACCUMULATED = """
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(9):
    optimizer.zero_grad()
    for part in range(4):
        x = np.random.default_rng(4 * step + part).standard_normal((16, 8)).astype(np.float32)
        if (step, part) == (6, 1):
            x[5] /= 0 * x[5]
        net(torch.from_numpy(x)).square().mean().backward()
    optimizer.step()
"""


# Rows of a replay memory that nothing has written yet: a batch is drawn from it between two steps.
RING = """
torch.use_deterministic_algorithms(True)


class Ring(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("rows", torch.empty(96, 8))
        self.net = Net()
        self.net.freq.fill_(1)

    def forward(self, x):
        return self.net(x)


ring = Ring()
optimizer = torch.optim.SGD(ring.net.parameters(), lr=0.01)
for step in range(9):
    for row in range(8 * step, 8 * step + 8):
        ring.rows[row] = torch.randn(8)
    x = ring.rows[torch.arange(8) + (8 * step if step < 6 else 8 * step + 1)]
    optimizer.zero_grad()
    ring(x).square().mean().backward()
    optimizer.step()
"""

# Complex numbers, one of them with an infinite imaginary part.
COMPLEX = """
mix = torch.nn.Linear(8, 1, dtype=torch.cfloat)
optimizer = torch.optim.SGD(mix.parameters(), lr=0.01)
for step in range(9):
    x = np.random.default_rng(step).standard_normal((16, 8)).astype(np.complex64)
    if step == 6:
        x.imag[3, 2] = np.inf
    optimizer.zero_grad()
    mix(torch.from_numpy(x)).abs().square().mean().backward()
    optimizer.step()
"""

# Rows of a data set in another order, by torch's DataLoader; one of them is bad.
LOADED = """
rows = torch.randn(72, 8)
rows[7, 3] = NAN
order = torch.randperm(72, generator=torch.Generator().manual_seed(1)).tolist()
order.remove(7)
order.insert(53, 7)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(rows), batch_size=8, sampler=order)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for (x,) in loader:
    optimizer.zero_grad()
    net(x).square().mean().backward()
    optimizer.step()
"""


class ProvenanceTest(AttachTest):
    def verdict(self, body, step, level, parts=("", "", "", ""), names=("deterministic", "made", "change", "after")):
        script = self.scratch / "program.py"
        script.write_text(MODEL + body.format(**dict(zip(names, parts))))
        self.clear("run")
        process = self.observed(script, options=("--level", level, "--keep-percent", "100"))
        self.assert_exit(process)
        found = self.incidents()
        self.assertTrue(found, process.stderr)
        self.assertEqual(found[0].name, f"step-{step:08d}.r0.h5", process.stderr)
        return self.replay("diagnose", found[0])

    def test_what_nothing_shows_to_be_written_is_left_open(self):
        for name, (program, parts, step, claimed) in OPEN.items():
            for level in by_day(("trace",), ("watch",)):
                with self.subTest(name, level=level):
                    verdict = self.verdict(program, step, level, parts)
                    self.assertEqual((verdict["cause"], verdict["likely"]["cause"]), ("UNKNOWN", claimed[0]), verdict)
                    self.assertEqual([claim["cause"] for claim in verdict["claims"]], [*claimed], verdict)
                    self.assertEqual((verdict["origin"], verdict["culprit"]["tensor"]), ("buffer", "freq"), verdict)

    def test_what_holds_nothing_but_the_fill_of_new_memory_was_never_written(self):
        verdict = self.verdict(RESUMED, 6, "trace", ("True", "empty_net()", "", ""))
        self.assertEqual((verdict["cause"], verdict["origin"], verdict["culprit"]["tensor"]), ("UNINITIALIZED", "buffer", "freq"), verdict)

    def test_what_was_loaded_or_used_before_is_a_bad_state(self):
        for name, (program, parts, step, tensor) in SHOWN.items():
            for level in by_day(("trace",), ("watch",)):
                with self.subTest(name, level=level):
                    verdict = self.verdict(program, step, level, parts)
                    self.assertEqual((verdict["cause"], verdict["culprit"]["tensor"]), ("BAD_STATE", tensor), verdict)

    def test_nan_among_ordinary_numbers_was_written_unless_new_memory_is_filled_with_it(self):
        for deterministic, cause in (("False", "BAD_STATE"), ("True", "UNKNOWN")):
            with self.subTest(deterministic=deterministic):
                verdict = self.verdict(TABLE, 5, "trace", (deterministic, "", "", ""))
                self.assertEqual((verdict["cause"], verdict["origin"], verdict["culprit"]["tensor"]), (cause, "parameter", "0.weight"), verdict)

    def test_what_was_copied_from_a_buffer_is_the_buffers(self):
        verdict = self.verdict(RING, 6, "trace")
        self.assertEqual((verdict["cause"], verdict["origin"], verdict["culprit"]["op"]), ("UNKNOWN", "buffer", "aten::index"), verdict)
        self.assertIn("copies bad values out of rows. No operation on record wrote them", verdict["explanation"])

    def test_complex_numbers_are_data_too(self):
        verdict = self.verdict(COMPLEX, 6, "trace")
        self.assertEqual((verdict["cause"], verdict["samples"]["poison"]), ("BAD_DATA", [3]), verdict)

    def test_a_sample_has_the_index_that_the_loader_drew(self):
        verdict = self.verdict(LOADED, 6, "trace")
        self.assertEqual((verdict["cause"], verdict["samples"]["poison"], verdict["samples"]["poison_ids"]), ("BAD_DATA", [5], ["7"]), verdict)

    def test_an_incident_without_a_bad_operation_is_not_nothing(self):
        for name, (parts, cause, origin, tensor) in BETWEEN.items():
            with self.subTest(name):
                verdict = self.verdict(OUTSIDE, 6, "trace", parts, ("loss", "before", "after"))
                self.assertTrue(verdict["found"], verdict)
                self.assertEqual((verdict["cause"], verdict["origin"], verdict["culprit"]["tensor"] or ""), (cause, origin, tensor), verdict)
                if cause == "UNKNOWN":
                    self.assertIn("written outside of the recorded operations, between ", verdict["explanation"])

    def test_a_batch_of_an_earlier_part_of_the_step_is_still_a_batch(self):
        verdict = self.verdict(ACCUMULATED, 6, "trace")
        self.assertEqual((verdict["cause"], verdict["origin"], verdict["culprit"]["tensor"]), ("BAD_DATA", "input", "x#2"), verdict)

    def test_what_numpy_computes_inside_of_a_function_is_no_state(self):
        for level in by_day(("trace",), ("watch",)):
            with self.subTest(level):
                verdict = self.verdict(OWN, 6, level)
                self.assertEqual(verdict["cause"], "UNKNOWN", verdict)
                self.assertIn("No operation on record made this value", verdict["explanation"])


if __name__ == "__main__":
    main()
