"""The probe on a device: does it change a bit, does it find a bad batch; one line for each claim, "ok" or "SHORT". gpu.sh starts it on a
GPU, tests try the script itself with `--device nqdev`. gpu_cost.py measures what the probe costs there."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from torch import nn

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parents[1] / "probe" / "attach" / "python"
LEVELS = ("guard", "trace", "watch")
STEPS, BAD = 40, 3


def mlp(width):
    return nn.Sequential(nn.Linear(width, 4 * width), nn.LayerNorm(4 * width), nn.GELU(), nn.Dropout(0.1),
                         nn.Linear(4 * width, width))


def attention(width):
    return nn.TransformerEncoderLayer(width, 8, 4 * width, 0.1, batch_first=True, norm_first=True)


def convolution(width):
    return nn.Sequential(nn.Unflatten(-1, (8, -1)), nn.Conv1d(8, 16, 3, padding=1), nn.BatchNorm1d(16), nn.ReLU(),
                         nn.Flatten(), nn.LazyLinear(width))


# name -> (model, shape of a batch before the last size, format of autocast, sizes on a GPU)
KINDS = {
    "mlp": (mlp, (256,), None),
    "attention_bf16": (attention, (16, 128), torch.bfloat16),
    "mlp_fp16": (mlp, (256,), torch.float16),
    "convolution": (convolution, (64,), None),
}


def trainer(kind, device, small):
    """step(number, bad) of a small training, and its model."""
    make, shape, amp = KINDS[kind]
    width = 64 if small else 512
    if small:
        shape = tuple(4 for _ in shape)
    torch.manual_seed(0)
    torch.get_device_module(device).manual_seed_all(0)
    model = make(width)
    model(torch.zeros(*shape, width))  # lazy sizes
    model = model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    scaler = torch.amp.GradScaler(device, init_scale=1024.0, enabled=amp is torch.float16)

    def step(bad=False):
        x = torch.randn(*shape, width)
        if bad:
            x.view(-1)[3] = float("nan")
        x = x.to(device)
        optimizer.zero_grad()
        with torch.autocast(device, amp, enabled=amp is not None):
            loss = model(x).float().square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    return step, model


def child(arguments):
    """One training in a process of its own: weights after healthy steps; or a bad step."""
    if arguments.device == "nqdev":
        import nqdev
        nqdev.set_seed(7)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # a launch for each new tensor, the probe's too
    if arguments.level != "alone":
        import nanquest
        if not nanquest.attach(arguments.run, arguments.level, watch_first=1000000 if arguments.level == "watch" else 0,
                               watch_every=0):
            raise SystemExit("the probe did not attach")
    step, model = trainer(arguments.child, arguments.device, arguments.small)
    if arguments.bad:
        for number in range(BAD + 2):
            step(number == BAD)
        return
    for _ in range(STEPS):
        step()
    torch.save([p.detach().cpu() for p in model.parameters()], arguments.out)


class Table:
    """Lines as they come; `short` if one of them is."""

    def __init__(self):
        self.short = False

    def add(self, what, value, ok=None):
        self.short = self.short or ok is False
        print(f"{what:50} {value:44} {'' if ok is None else 'ok' if ok else 'SHORT'}".rstrip(), flush=True)


def run_child(arguments, kind, level, folder, bad=False):
    out = folder / "out.pt"
    out.unlink(missing_ok=True)
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([str(PACKAGE), str(HERE), os.environ.get("PYTHONPATH", "")]))
    command = [sys.executable, str(Path(__file__).resolve()), "--device", arguments.device, "--child", kind, "--level", level,
               "--run", str(folder / "run"), "--out", str(out)]
    command += ["--bad"] * bad + ["--small"] * arguments.small
    process = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    if process.returncode != 0 or (level != "alone" and "the probe is off" in process.stderr):
        return None, process.stderr[-400:].replace("\n", " ")
    return (True if bad else torch.load(out)), ""


def same_bits(a, b):
    return all(torch.equal(x.view(torch.uint8), y.view(torch.uint8)) for x, y in zip(a, b, strict=True))


def healthy(arguments, table, kind, scratch):
    """Bits of the weights, by level, against the program alone."""
    alone, why = run_child(arguments, kind, "alone", scratch)
    again, _ = run_child(arguments, kind, "alone", scratch)
    if alone is None or again is None:
        return table.add(f"{kind}: alone", why, False)
    if not same_bits(alone, again):
        return table.add(f"{kind}: alone", "other bits each time")
    for level in LEVELS:
        folder = scratch / f"{kind}-{level}"
        folder.mkdir()
        seen, why = run_child(arguments, kind, level, folder)
        if seen is None:
            table.add(f"{kind}: {level}", why, False)
            continue
        same = same_bits(alone, seen)
        table.add(f"{kind}: {level}, weights", "the same bits" if same else "OTHER BITS", same)


def failing(arguments, table, kind, level, scratch):
    """A bad batch: found in its step, and replayed on a CPU; the verdict says by which comparison."""
    name = f"{kind}: {level}, bad batch"
    folder = scratch / f"{kind}-{level}-bad"
    folder.mkdir()
    done, why = run_child(arguments, kind, level, folder, bad=True)
    files = sorted((folder / "run").glob("incidents/*.r0.h5"))
    if done is None or not files:
        return table.add(name, why or "no incident was recorded", False)
    replay = subprocess.run([str(Path(os.environ["NANQUEST_BIN"]) / "nanquest-replay"), "-q", str(files[0])],
                            capture_output=True, text=True, timeout=280)
    report = files[0].with_suffix(".json")
    if replay.returncode != 1 or not report.exists():
        return table.add(name, (replay.stdout + replay.stderr)[-300:].replace("\n", " "), False)
    verdict = json.loads(report.read_text())
    table.add(name, f"step {verdict['step']}, {verdict['cause']}", verdict["step"] == BAD and verdict["cause"] == "BAD_DATA")
    reproduction = verdict["reproduction"]
    basis = "bit for bit" if reproduction["bit_exact"] else f"not bit for bit: {json.dumps(reproduction)[:200]}"
    table.add(f"{name}, replayed on a CPU", basis)


def looked(device, table):
    """The library's look at many tensors at once, which the gate rests on, beside PyTorch's own norms."""
    torch.ops.load_library(os.environ["NANQUEST_ATTACH_LIBRARY"])
    torch.manual_seed(0)
    kernels = torch.ops.nanquest.own_kernels(device)
    table.add("a kernel looks at all gradients", "yes" if kernels & 2 else "no: PyTorch's norms are used", bool(kernels & 2))
    if not kernels & 2:
        return
    for bad in (False, True):
        tensors = [torch.randn(n, dtype=torch.float64).to(kind).to(device) for n in (1, 7, 1000, 300001) * 15
                   for kind in (torch.float32, torch.bfloat16, torch.float16, torch.float64)]
        if bad:
            tensors[3][0], tensors[77][-1], tensors[200][5] = float("nan"), float("inf"), -float("inf")
        numbers = [torch.tensor(2.5, device=device)]
        found = torch.empty(3 * len(tensors) + 1, dtype=torch.float64, device=device)
        word = torch.full((), -1.0, device=device)
        torch.ops.nanquest_device.look(tensors, numbers, found, word)
        squares, largest, counts = found.cpu()[:-1].view(3, -1)
        wide = [tensor.cpu().double() for tensor in tensors]
        same = torch.allclose(squares, torch.stack([t.square().sum() for t in wide]), rtol=1e-10, equal_nan=True)
        same = same and torch.equal(largest, torch.stack([t.abs().nan_to_num(0, float("inf")).max() for t in wide]))
        same = same and torch.equal(counts, torch.stack([t.isfinite().logical_not().sum() for t in wide]).double())
        same = same and found[-1].item() == 2.5 and word.item() == bad
        table.add(f"… finds what PyTorch finds, {'NaN and infinities' if bad else 'finite values'}", f"{len(tensors)} tensors", same)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--scans", help="program that compares the device's scans with the CPU's")
    parser.add_argument("--kinds", default=",".join(KINDS))
    for text in ("child", "level", "run", "out"):
        parser.add_argument(f"--{text}")
    parser.add_argument("--bad", action="store_true")
    parser.add_argument("--small", action="store_true")
    arguments = parser.parse_args()
    if arguments.device == "nqdev":
        import nqdev  # noqa: F401
    if arguments.child:
        return child(arguments)
    table = Table()
    name = torch.cuda.get_device_name() if arguments.device == "cuda" else arguments.device
    print(f"{name}, torch {torch.__version__}")
    if arguments.scans:
        scans = subprocess.run([arguments.scans, "--gtest_brief=1"], capture_output=True, text=True, timeout=300)
        lines = scans.stdout.strip().splitlines()
        table.add("scans and hashes as the CPU's", lines[-1].strip() if lines else scans.stderr[-100:], scans.returncode == 0)
    looked(arguments.device, table)
    with tempfile.TemporaryDirectory() as scratch:
        for kind in arguments.kinds.split(","):
            healthy(arguments, table, kind, Path(scratch))
            for level in ("trace", "watch"):
                failing(arguments, table, kind, level, Path(scratch))
    return int(table.short)


if __name__ == "__main__":
    sys.exit(main())
