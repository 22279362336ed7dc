"""Training on the test device gives the CPU's bits, whatever order its streams run in."""

import os
import signal
import subprocess
import sys
import unittest

import nqdev
import torch
from torch import nn

SEEDS = (0, 1, 2)


def mlp():
    return nn.Sequential(nn.Linear(16, 32), nn.LayerNorm(32), nn.GELU(), nn.Linear(32, 4))


def train(device, make_optimizer, steps=6, amp=None, make=mlp, in_shape=(16,)):
    """Losses and parameters, on the CPU."""
    torch.manual_seed(0)
    model = make().to(device)
    optimizer = make_optimizer(model.parameters())
    scaler = torch.amp.GradScaler(device, init_scale=2.0**10, enabled=amp == torch.float16)
    inputs, labels = torch.randn(steps, 8, *in_shape), torch.randint(4, (steps, 8))
    losses = []
    for x, y in zip(inputs, labels):
        optimizer.zero_grad()
        with torch.autocast(device, amp, enabled=amp is not None):
            loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.detach())
    return [loss.cpu() for loss in losses] + [p.detach().cpu() for p in model.state_dict().values()]


class DeviceTest(unittest.TestCase):
    def setUp(self):
        nqdev.heal()
        nqdev.set_seed(0)
        nqdev.reset_counts()

    def tearDown(self):
        nqdev.heal()
        torch.accelerator.synchronize()

    def assert_same_bits(self, a, b):
        self.assertEqual(len(a), len(b))
        for x, y in zip(a, b):
            self.assertTrue(torch.equal(x, y), (x, y))


class TrainingTest(DeviceTest):
    def check(self, make_optimizer, seeds=SEEDS, **how):
        expected = train("cpu", make_optimizer, **how)
        for seed in seeds:
            with self.subTest(seed=seed):
                nqdev.set_seed(seed)
                self.assert_same_bits(train("nqdev", make_optimizer, **how), expected)

    def test_adamw(self):
        for way in ({}, {"foreach": True}, {"foreach": False}, {"fused": True}):
            with self.subTest(way):
                self.check(lambda p: torch.optim.AdamW(p, lr=1e-2, **way))

    def test_sgd_with_momentum(self):
        self.check(lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9))

    def test_batch_norm_keeps_its_running_statistics(self):
        self.check(lambda p: torch.optim.SGD(p, lr=0.1),
                   make=lambda: nn.Sequential(nn.Linear(16, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 4)))

    def test_convolutions(self):
        self.check(lambda p: torch.optim.SGD(p, lr=0.1), in_shape=(2, 6, 6),
                   make=lambda: nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.ConvTranspose2d(4, 3, 2), nn.MaxPool2d(2),
                                              nn.Flatten(), nn.Linear(12, 4)))

    def test_embedding(self):
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.table, self.inner, self.head = nn.Embedding(50, 8), nn.Linear(8, 8), nn.Linear(8, 4)

            def forward(self, x):
                return self.head(self.inner(self.table(x.abs().mul(9).long().clamp(0, 49))).tanh().mean(1))
        self.check(lambda p: torch.optim.Adam(p, lr=1e-2), make=Net)

    def test_attention(self):
        def make():
            return nn.Sequential(nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True), nn.Flatten(),
                                 nn.Linear(48, 4))
        torch.manual_seed(0)
        x = torch.randn(2, 3, 16)
        model = make()
        nqdev.set_seed(5)
        there = make().to("nqdev")
        there.load_state_dict(model.state_dict())
        torch.testing.assert_close(there(x.to("nqdev")).cpu(), model(x))

    def test_scaler_and_autocast(self):
        self.check(lambda p: torch.optim.AdamW(p, lr=1e-2), amp=None)
        for amp in (torch.bfloat16, torch.float16):  # CUDA's lists are not the CPU's: only near
            for seed in SEEDS:
                nqdev.set_seed(seed)
                values = train("nqdev", lambda p: torch.optim.AdamW(p, lr=1e-2), amp=amp)
                for a, b in zip(values, train("cpu", lambda p: torch.optim.AdamW(p, lr=1e-2))):
                    torch.testing.assert_close(a, b, atol=0.05, rtol=0.05)
        with torch.autocast("nqdev", torch.float16):
            linear = nn.Linear(4, 4).to("nqdev")
            h = linear(torch.ones(2, 4, device="nqdev"))
            self.assertEqual(h.dtype, torch.float16)
            self.assertEqual(h.softmax(1).dtype, torch.float32)  # on the CPU it stays half

    def test_a_scaled_overflow_skips_the_step(self):
        w = nn.Parameter(torch.ones(3, device="nqdev"))
        optimizer = torch.optim.AdamW([w], lr=0.1, fused=True)
        scaler = torch.amp.GradScaler("nqdev", init_scale=4.0)
        scaler.scale((w * float("inf")).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        self.assertEqual(scaler.get_scale(), 2.0)
        self.assertTrue(torch.equal(w.detach().cpu(), torch.ones(3)))


class OrderTest(DeviceTest):
    def test_kernels_run_later(self):
        nqdev.set_seed(7)
        waited = False
        for _ in range(50):
            a = torch.ones(4, device="nqdev") + 1
            waited = waited or nqdev.pending() > 0
        self.assertTrue(waited)
        self.assertEqual(a.tolist(), [2.0] * 4)
        self.assertEqual(nqdev.pending(), 0)

    def two_streams(self, seed, wait):
        """What a second stream reads of a value that the first one is about to make."""
        nqdev.set_seed(seed)
        value = torch.zeros(4, device="nqdev")
        torch.accelerator.synchronize()
        side = torch.Stream("nqdev")
        value.add_(1)
        if wait:
            side.wait_stream(torch.accelerator.current_stream())
        with side:
            seen = value * 1
        side.synchronize()
        result = seen.cpu()[0].item()
        torch.accelerator.synchronize()
        return result

    def test_who_forgets_to_wait_sees_the_old_value_sometimes(self):
        self.assertEqual({self.two_streams(seed, wait=True) for seed in range(1, 40)}, {1.0})
        self.assertEqual({self.two_streams(seed, wait=False) for seed in range(1, 40)}, {0.0, 1.0})

    def reused(self, seed, record):
        """What a side stream reads of memory whose owner has freed it."""
        nqdev.set_seed(seed)
        side = torch.Stream("nqdev")
        value = torch.ones(64, device="nqdev")
        side.wait_stream(torch.accelerator.current_stream())
        with side:
            seen = value * 1
        if record:
            value.record_stream(side)
        del value
        other = torch.zeros(64, device="nqdev")
        torch.accelerator.current_stream().synchronize()
        side.synchronize()
        return seen.cpu()[0].item(), other

    def test_freed_memory_is_handed_out_at_once(self):
        self.assertEqual({self.reused(seed, record=True)[0] for seed in range(1, 40)}, {1.0})
        self.assertIn(0.0, {self.reused(seed, record=False)[0] for seed in range(1, 40)})

    def test_events(self):
        nqdev.set_seed(3)
        event = torch.Event("nqdev")
        a = torch.ones(3, device="nqdev")
        event.record()
        event.synchronize()
        self.assertTrue(event.query())
        self.assertEqual(a.tolist(), [1.0] * 3)

    def test_copies_without_waiting(self):
        pinned = torch.ones(4).pin_memory()
        self.assertTrue(pinned.is_pinned())
        self.assertFalse(torch.ones(4).is_pinned())
        seen = set()
        for seed in range(1, 30):
            nqdev.set_seed(seed)
            pinned.fill_(1)
            there = pinned.to("nqdev", non_blocking=True)
            pinned.fill_(2)  # too early
            seen.add(there.cpu()[0].item())
            host = torch.ones(4)
            safe = host.to("nqdev", non_blocking=True)
            host.fill_(2)
            self.assertEqual(safe.tolist(), [1.0] * 4)
        self.assertIn(2.0, seen)

    def test_two_devices(self):
        for seed in SEEDS:
            nqdev.set_seed(seed)
            a = torch.arange(5.0, device="nqdev:0") * 2
            b = a.to("nqdev:1")
            self.assertEqual(b.device.index, 1)
            self.assertEqual((b + 1).tolist(), [1.0, 3.0, 5.0, 7.0, 9.0])


class GeneratorTest(DeviceTest):
    def test_seed_and_offset_say_all(self):
        draws = []
        for seed in SEEDS:
            nqdev.set_seed(seed)
            torch.manual_seed(11)
            state = torch.nqdev.get_rng_state()
            first = nn.functional.dropout(torch.ones(100, device="nqdev"), 0.5).cpu()
            second = torch.randn(7, device="nqdev").cpu()
            torch.nqdev.set_rng_state(state)
            self.assertEqual(state.numel(), 16)
            again = nn.functional.dropout(torch.ones(100, device="nqdev"), 0.5).cpu()
            self.assertTrue(torch.equal(first, again))
            draws.append((first, second))
        for first, second in draws:
            self.assertTrue(torch.equal(first, draws[0][0]) and torch.equal(second, draws[0][1]))
        self.assertFalse(torch.equal(torch.randn(7, device="nqdev").cpu(), torch.randn(7, device="nqdev").cpu()))

    def test_the_cpu_generator_is_left_alone(self):
        torch.manual_seed(1)
        expected = torch.rand(3)
        torch.manual_seed(1)
        torch.nn.functional.dropout(torch.ones(100, device="nqdev"), 0.5)
        self.assertTrue(torch.equal(torch.rand(3), expected))


class FailureTest(DeviceTest):
    def test_out_of_memory(self):
        nqdev.fail("out_of_memory", after=1)
        torch.empty(10, device="nqdev")
        with self.assertRaises(torch.OutOfMemoryError):
            torch.empty(10, device="nqdev")
        torch.empty(10, device="nqdev")
        nqdev.set_limit(nqdev.live_bytes() + 4096)
        try:
            with self.assertRaises(torch.OutOfMemoryError):
                torch.empty(10000, device="nqdev")
        finally:
            nqdev.set_limit(2 << 30)

    def test_a_failed_launch_shows_at_the_next_synchronisation(self):
        nqdev.fail("launch")
        a = torch.ones(3, device="nqdev")
        a.add_(1)
        for _ in range(2):
            with self.assertRaisesRegex(RuntimeError, "launch failure"):
                torch.accelerator.synchronize()
        nqdev.heal()
        torch.accelerator.synchronize()

    def test_what_a_kernel_refuses_shows_then_too(self):
        nqdev.set_seed(1)
        table = torch.ones(3, 2, device="nqdev")
        nn.functional.embedding(torch.tensor([5], device="nqdev"), table)
        with self.assertRaisesRegex(RuntimeError, "earlier kernel"):
            torch.accelerator.synchronize()
        nqdev.heal()

    def test_a_lost_device_stays_lost(self):
        a = torch.ones(3, device="nqdev")
        nqdev.fail("lost")
        for _ in range(2):
            with self.assertRaisesRegex(RuntimeError, "lost"):
                a.add_(1)

    def test_the_host_cannot_touch_device_memory(self):
        program = ("import ctypes, nqdev, torch\n"
                   "a = torch.ones(4, device='nqdev')\n"
                   "ctypes.string_at(a.data_ptr(), 4)\n")
        process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120,
                                 cwd=os.path.dirname(os.path.abspath(__file__)))
        self.assertEqual(process.returncode, -signal.SIGSEGV)
        self.assertIn("the host touched device memory", process.stderr)


class CounterTest(DeviceTest):
    def test_counts(self):
        a = torch.empty(3, device="nqdev")
        nqdev.reset_counts()
        a.fill_(2)
        b = a + a
        torch._foreach_mul_([a, b], 2.0)
        self.assertEqual(nqdev.counts(), {"launches": 3, "copies": 0, "synchronisations": 0, "host_reads": 0,
                                          "allocations": 1})
        self.assertEqual(b.sum().item(), 24.0)
        counts = nqdev.counts()
        self.assertEqual((counts["synchronisations"], counts["host_reads"]), (1, 1))
        a.nonzero()
        self.assertEqual(nqdev.counts()["synchronisations"], 2)


if __name__ == "__main__":
    unittest.main()
