"""Small trainings on the test device, alone or under the probe in a process of their own: shared by the tests in this folder."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import nqdev
import torch
from torch import nn

HERE = Path(__file__).resolve().parent
BIN = Path(os.environ["NANQUEST_BIN"])
PACKAGE = HERE.parents[1] / "probe" / "attach" / "python"
STEPS, COUNTED_FROM, BAD = 6, 3, 3
SEEDS = int(os.environ.get("NANQUEST_DEVICE_SEEDS", "10"))  # orders in which streams run; nightly 1000


def mlp():
    return nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.ReLU(), nn.Linear(16, 2))


def dropping():
    return nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.3), nn.ReLU(), nn.Linear(16, 2))


class DeviceOnly(nn.Module):
    """Uses an operator that a CPU has no kernel for."""

    def __init__(self):
        super().__init__()
        self.layers = mlp()

    def forward(self, x):
        with torch.no_grad():
            x = torch._masked_scale(x, (x != 0.5).to(torch.uint8), 0.5)
        return self.layers(x)


class Attends(nn.Module):
    """Fused attention, and a softmax that takes fp16 and gives fp32: kernels that only devices have."""

    def __init__(self):
        super().__init__()
        self.first, self.qkv, self.last = nn.Linear(8, 16), nn.Linear(16, 48), nn.Linear(16, 2)

    def forward(self, x):
        x = self.first(x)
        q, k, v = self.qkv(x).view(1, 4, 3, 2, 8).permute(2, 0, 3, 1, 4).unbind(0)
        seen = torch.ops.aten._scaled_dot_product_efficient_attention(q, k, v, None, True, 0.0, True)[0]
        x = x + seen.transpose(1, 2).reshape(4, 16)
        return self.last(x * torch._softmax(x.half(), -1, True))


class Rounded(nn.Module):
    """Rounds what goes through it to fp8, there and back, and leaves the gradient as it is."""

    def forward(self, x):
        return x + (x.detach().to(torch.float8_e4m3fn).float() - x.detach())


def rounding():
    return nn.Sequential(nn.Linear(8, 16), Rounded(), nn.ReLU(), nn.Linear(16, 2))


class Squares(nn.Module):
    """Large inputs overflow fp16 in a square, and what reads it gives finite numbers all the same: zeros where numbers
    belong (a norm), or the right ones (a tanh)."""

    def __init__(self, harmful):
        super().__init__()
        self.harmful, self.first, self.last = harmful, nn.Linear(8, 16), nn.Linear(16, 2)

    def forward(self, x):
        x = self.first(x)
        half = x.half()
        square = half.pow(2)
        x = half * square.mean(-1, keepdim=True).rsqrt() if self.harmful else half.detach().clamp(-1, 1) * square.detach().tanh()
        return self.last(x.float())


class TwoDevices(nn.Module):
    """Half of it on each device; the activations go from peer to peer."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Sequential(nn.Linear(8, 16), nn.ReLU()), nn.Linear(16, 2)

    def to(self, device):
        self.first.to(f"{device}:0")
        self.second.to(f"{device}:1")
        return self

    def forward(self, x):
        return self.second(self.first(x).to("nqdev:1")).to("nqdev:0")


class SideStream(nn.Module):
    """One branch runs in parallel to the other; its memory belongs to the main stream."""

    def __init__(self):
        super().__init__()
        self.main, self.side = nn.Linear(8, 16), nn.Linear(8, 16)
        self.last = nn.Linear(16, 2)

    def forward(self, x):
        if x.device.type == "cpu":
            return self.last(self.main(x) + self.side(x).tanh())
        stream, here = torch.Stream("nqdev"), torch.accelerator.current_stream()
        stream.wait_stream(here)
        with stream:
            beside = self.side(x).tanh()
        x.record_stream(stream)
        a = self.main(x)
        here.wait_stream(stream)
        beside.record_stream(here)
        return self.last(a + beside)


class Offloaded(nn.Module):
    """What the backward pass needs waits in the host's memory; in pinned memory as PyTorch itself does it."""

    def __init__(self, pinned=False):
        super().__init__()
        self.layers, self.pinned = mlp(), pinned

    def forward(self, x):
        def unpack(packed):
            device, value = packed
            return value.to(device, non_blocking=True)

        if self.pinned:
            with torch.autograd.graph.save_on_cpu(pin_memory=True, device_type="nqdev"):
                return self.layers(x)
        with torch.autograd.graph.saved_tensors_hooks(lambda t: (t.device, t.to("cpu")), unpack):
            return self.layers(x)


# name -> (model, optimizer, format of autocast)
KINDS = {
    "adamw": (mlp, lambda p: torch.optim.AdamW(p, lr=1e-2), None),
    "fused": (mlp, lambda p: torch.optim.AdamW(p, lr=1e-2, fused=True), None),
    "dropout": (dropping, lambda p: torch.optim.SGD(p, lr=1e-2, momentum=0.9), None),
    "fp16": (mlp, lambda p: torch.optim.AdamW(p, lr=1e-2), torch.float16),
    "fp8": (rounding, lambda p: torch.optim.SGD(p, lr=1e-2), None),
    "silent": (lambda: Squares(True), lambda p: torch.optim.SGD(p, lr=1e-3), None),
    "saturates": (lambda: Squares(False), lambda p: torch.optim.SGD(p, lr=1e-3), None),
    "device_only": (DeviceOnly, lambda p: torch.optim.SGD(p, lr=1e-2), None),
    "attends": (Attends, lambda p: torch.optim.AdamW(p, lr=1e-2), None),
    "two_devices": (TwoDevices, lambda p: torch.optim.AdamW(p, lr=1e-2), None),
    "side_stream": (SideStream, lambda p: torch.optim.AdamW(p, lr=1e-2), None),
    "offloaded": (Offloaded, lambda p: torch.optim.SGD(p, lr=1e-2, momentum=0.9), None),
    "offloaded_pinned": (lambda: Offloaded(True), lambda p: torch.optim.SGD(p, lr=1e-2, momentum=0.9), None),
    "moved": (mlp, lambda p: torch.optim.AdamW(p, lr=1e-2, fused=True), None),
}

ORDINARY = ("adamw", "fused", "dropout", "fp16")


def train(kind, fault="", seed=1):
    """(weights on the CPU, counts of the device's events in the last steps). In step BAD something goes wrong: "batch"
    or "rate"; or from then on: "large" inputs."""
    make, optimizer, amp = KINDS[kind]
    moved = kind == "moved"
    nqdev.set_seed(seed)
    torch.manual_seed(0)
    nqdev._module.manual_seed_all(0)
    model = make()
    if moved:
        model(torch.zeros(4, 8))  # tried on the CPU first
    model = model.to("nqdev")
    optimizer = optimizer(model.parameters())
    scaler = torch.amp.GradScaler("nqdev", init_scale=256.0, enabled=amp is not None)
    for step in range(STEPS):
        if step == COUNTED_FROM:
            nqdev.reset_counts()
        x = torch.randn(4, 8)
        if step == BAD and fault == "batch":
            x[1, 3] = float("nan")
        if step >= BAD and fault == "large":
            x = x * 3000
        if step == BAD and fault == "rate":
            for group in optimizer.param_groups:
                group["lr"] = float("inf")
        optimizer.zero_grad()
        with torch.autocast("nqdev", amp, enabled=amp is not None):
            loss = model(x.to("nqdev")).square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    counts = nqdev.counts()
    return [p.detach().cpu() for p in model.parameters()], counts


def train_while_it_fails(kind):
    """[(failure, number of the call that fails, weights or the error's words)]: the program's outcome, each time anew."""
    outcomes = []
    for failure in nqdev.FAILURES:
        for after in range(0, 400, 13):
            nqdev.heal()
            nqdev.fail(failure, after)
            try:
                outcomes.append((failure, after, train(kind)[0]))
            except RuntimeError as error:
                outcomes.append((failure, after, str(error)))
    nqdev.heal()
    return outcomes


class Observed(unittest.TestCase):
    """A test of trainings that the probe watches."""

    script = Path(__file__).resolve()  # whose `--train` runs them (run_under_probe)

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = Path(scratch.name)

    def observed(self, level, kind, fault="", seeds=1, ranks=1, **settings):
        """(run directory, [weights, counts] for each seed) of such trainings in a process of its own; seeds=0: one of seed 0. Several
        `ranks`: each in its process, and [[weights, counts]] for each. Level "off": without the probe."""
        run, outs = self.scratch / f"{level}-{kind}", Path(tempfile.mkdtemp(dir=self.scratch))
        words = json.dumps({name: str(value) if isinstance(value, Path) else value for name, value in settings.items()})
        processes = []
        for rank in range(ranks):
            place = {"RANK": str(rank), "WORLD_SIZE": str(ranks)} if ranks > 1 else {}
            environment = dict(os.environ, PYTHONPATH=os.pathsep.join([str(PACKAGE), str(HERE)]), **place)
            command = [sys.executable, str(self.script), "--train", kind, fault, str(seeds), level, str(run), str(outs / str(rank)), words]
            processes.append(subprocess.Popen(command, env=environment, cwd=self.scratch, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))
            self.addCleanup(processes[-1].kill)
        # The time is that of a hang: a busy machine takes 2 s an order.
        said = [process.communicate(timeout=280 + 6 * SEEDS)[1] for process in processes]
        self.assertEqual([process.returncode for process in processes], [0] * ranks, said)
        self.said = "\n".join(said)
        if fault != "failures":
            self.assertNotIn("the probe is off", self.said)
        results = [torch.load(outs / str(rank)) for rank in range(ranks)]
        return run, results if ranks > 1 else results[0]

    def assert_same_bits(self, a, b):
        for x, y in zip(a, b, strict=True):
            self.assertTrue(torch.equal(x.view(torch.int32), y.view(torch.int32)), (x, y))

    def assert_same_in_every_order(self, level, kind):
        """No bit of the weights changes under the probe, in whatever order the streams run."""
        alone = train(kind)[0]
        run, all_weights = self.observed(level, kind, seeds=SEEDS)
        self.assertEqual(len(all_weights), SEEDS)
        self.assertEqual(list(run.glob("incidents/*")), [])
        for seed, (weights, _) in enumerate(all_weights, 1):
            with self.subTest(kind=kind, level=level, seed=seed):
                self.assert_same_bits(weights, alone)

    def verdict(self, run, step=BAD):
        """Of the first incident, which is of this step, by a replay on the CPU."""
        files = sorted(run.glob("incidents/*.r0.h5"))
        self.assertTrue(files, [str(p) for p in run.rglob("*")])
        replay = subprocess.run([str(BIN / "nanquest-replay"), "-q", str(files[0])], capture_output=True, text=True,
                                timeout=280)
        self.assertEqual(replay.returncode, 1, replay.stdout + replay.stderr)
        verdict = json.loads(files[0].with_suffix(".json").read_text())
        self.assertEqual(verdict["step"], step)
        self.assertTrue(verdict["reproduction"]["bit_exact"], verdict["reproduction"])
        return verdict

    def replayed(self, file, *arguments, here=False):
        """(exit code, JSON, stderr) of `verify`; `here`: by a program that has the device."""
        environment = dict(os.environ)
        if here:
            environment["LD_PRELOAD"] = os.environ["NANQUEST_DEVICE_LIBRARY"]
        replay = subprocess.run([str(BIN / "nanquest-replay"), "verify", "--json", str(file), *arguments], env=environment,
                                capture_output=True, text=True, timeout=280)
        return replay.returncode, json.loads(replay.stdout or "null"), replay.stderr


def run_under_probe(train):
    """The process that `observed` starts."""
    kind, fault, seeds, level, run_dir, out, settings = sys.argv[sys.argv.index("--train") + 1:]
    import nanquest
    # As a rule no step is watched at level trace, so that the standing trace records.
    if level != "off" and not nanquest.attach(run_dir, level, **{"watch_first": 0, "watch_every": 0, "keep_percent": 1000000, **json.loads(settings)}):
        raise SystemExit("the probe did not attach")
    if fault == "failures":
        torch.save(train_while_it_fails(kind), out)
        sys.exit()
    torch.save([train(kind, fault, seed) for seed in range(1, int(seeds) + 1) or [0]], out)


if __name__ == "__main__":
    run_under_probe(train)
