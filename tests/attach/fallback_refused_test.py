"""Programs that can't go on in fp32: a line says why, and their bad batches are skipped; nothing else changes."""


from attached import AttachTest, main

HEAD = """
import sys, resource, torch
from torch import nn
torch.manual_seed(0)
LOW, NAN = torch.bfloat16, float("nan")
class Tail(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(1, 16) / 4)
    def forward(self, x):
        return x @ self.weight.t()
model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Dropout(0.1), Tail())
make = lambda p: torch.optim.AdamW(p, lr=1e-2)
pure = amp = False
"""
LOOP = """
if pure: model.to(LOW)
optimizer = make(model.parameters())
def step(number, around=lambda: None):
    x = torch.randn(16, 8)
    if number == 5: x[2, 3] = NAN
    with torch.autocast("cpu", LOW, enabled=amp):
        loss = model(x.to(LOW) if pure else x).float().square().mean()
    optimizer.zero_grad()
    loss.backward()
    around()
    optimizer.step()
for number in range(12): step(number, around if number == 5 and "around" in globals() else lambda: None)
torch.save([model.state_dict(), optimizer.state_dict()["state"], torch.get_rng_state()], sys.argv[1])
"""


class RefusedTest(AttachTest):
    def both(self, body, refusal, loop=LOOP):
        """Under fallback_fp32 and under skip: the same but for the words."""
        script = self.scratch / "program.py"
        script.write_text(HEAD + body + loop)
        left = {}
        for policy in ("fallback_fp32", "skip"):
            self.clear(policy)
            process = self.observed(script, f"{policy}.pt", run_dir=policy, options=("--on-incident", policy))
            self.assert_exit(process)
            self.assertNotIn("the probe is off", process.stderr)
            self.assertEqual(process.stderr.count(f"fallback_fp32 becomes skip: {refusal}"), policy != "skip", process.stderr)
            left[policy] = process.stderr, (self.scratch / f"{policy}.pt").read_bytes()
        return left

    def assert_skips(self, body, refusal):
        import torch
        left = self.both(body, refusal)
        self.assertRegex(left["fallback_fp32"][0], "step 5: (batch skipped: |its update is left out)")
        one, other = (torch.load(self.scratch / f"{policy}.pt") for policy in left)
        for name, value in one[0].items():
            self.assertTrue(bool(torch.isfinite(value).all()), name)
            self.assertEqual((value.dtype, value.tolist()), (other[0][name].dtype, other[0][name].tolist()), name)
        self.assertEqual(str(one[1]), str(other[1]))
        self.assertTrue(one[2].equal(other[2]))

    def test_a_cast_in_the_middle_of_a_model(self):
        self.assert_skips("""
pure = True
Tail.forward = lambda self, x: x.to(LOW) @ self.weight.t()
""", "in fp32 the model raises RuntimeError: ")

    def test_a_kernel_that_has_no_fp32(self):
        self.assert_skips("""
amp = True
def forward(self, x):
    if x.dtype == torch.float32: raise RuntimeError("only for fp16 and bf16")
    return x @ self.weight.t()
Tail.forward = forward
""", "in fp32 the model raises RuntimeError: only for fp16 and bf16")

    def test_weights_of_8_bits(self):
        self.assert_skips("""
model[3].register_parameter("packed", nn.Parameter(torch.zeros(4, dtype=torch.int8), requires_grad=False))
""", "some of its weights have 4 or 8 bits")

    def test_memory_that_two_weights_share(self):
        self.assert_skips("""
pure = True
class Pair(Tail):
    def __init__(self):
        super().__init__()
        self.other = nn.Parameter(torch.zeros(1, 16))
    def forward(self, x):
        return super().forward(x) + x @ self.other.t()
model[3] = Pair()
def make(parameters):
    model[3].other.data = model[3].weight.data
    return torch.optim.SGD(parameters, lr=1e-3)
""", "two of its weights or states share memory, and would no longer")

    def test_too_little_memory(self):
        self.assert_skips("""
pure = True
class Large(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2**25))
    def forward(self, x):
        return x * self.weight[0]
model.append(Large())
make = lambda p: torch.optim.SGD(p, lr=1e-2)
def around():
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 100 * 2**20, resource.RLIM_INFINITY))
""", "[enforce fail at alloc_cpu.cpp")

    def test_a_compiled_model(self):
        self.assert_skips("""
amp = True
model = torch.compile(model)
""", "regions of torch.compile keep the formats that they were compiled for")

    def test_shards(self):
        left = self.both("""
import os, torch.distributed as dist
from torch.distributed.fsdp import fully_shard
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
dist.init_process_group("gloo", rank=0, world_size=1)
fully_shard(model)
""", "FSDP keeps weights and moments in shards", LOOP.rpartition("torch.save")[0] + "open(sys.argv[1], 'w')\n")
        self.assertIn("batch skipped", left["skip"][0])

    def test_an_optimizer_that_is_not_pytorchs(self):
        left = self.both("""
class Mine(torch.optim.SGD):
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                p.data.add_(p.grad, alpha=-1e-3)
make = Mine
""", "Mine.step is not PyTorch's own")
        self.assertIn("so its updates can't be skipped", left["skip"][0])

    def test_averages_of_the_weights_go_along(self):
        script = self.scratch / "program.py"
        script.write_text(HEAD + """
import copy
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
pure = True
average, slow = AveragedModel(model.to(LOW), multi_avg_fn=get_ema_multi_avg_fn(0.9)), copy.deepcopy(model)
""" + LOOP.replace("    optimizer.step()\n", """    optimizer.step()
    average.update_parameters(model)
    with torch.no_grad():
        for mine, new in zip(slow.parameters(), model.parameters()): mine.lerp_(new, 0.1)
        slow(x.to(LOW))
"""))
        process = self.observed(script, "left.pt", options=("--on-incident", "fallback_fp32"))
        self.assert_exit(process)
        self.assertIn("from here on: fp32", process.stderr)

    def test_large_buffers_are_left_as_they_are(self):
        script = self.scratch / "program.py"
        script.write_text(HEAD + "model.register_buffer('large', torch.zeros(2**25))\n" + LOOP)
        process = self.observed(script, "left.pt", options=("--on-incident", "skip"))
        self.assert_exit(process)
        self.assertIn("1 buffers of 134 MB are not restored when a step is skipped", process.stderr)


if __name__ == "__main__":
    main()
