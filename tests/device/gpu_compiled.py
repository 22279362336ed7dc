"""Compiled programs on a GPU under the probe, one line for each claim: no bit changes, nothing is alarmed about, and a bad step names
the operation inside the region. gpu.sh starts it; `--device cpu` tries what needs no GPU, and the script itself."""

import argparse
import concurrent.futures
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
BAD, STEPS, WIDTH, HEADS, ROWS = 4, 7, 64, 4, 128
REGION = "nanquest::compiled_region"

# name -> (what the second block computes, mode of torch.compile, needs a GPU, operations that may be named, causes)
KINDS = {
    "plain": ("log", "default", False, ("aten::log",), ("DOMAIN",)),
    "graphs": ("log", "reduce-overhead", True, ("aten::log",), ("DOMAIN",)),
    "dropout": ("dropout", "default", True, ("aten::log",), ("DOMAIN",)),
    "attention": ("attention", "default", True, ("aten::div",), ("DIV_ZERO",)),
    "attention_graphs": ("attention", "reduce-overhead", True, ("aten::div",), ("DIV_ZERO",)),
    "flex": ("flex", "default", True, ("aten::div",), ("DIV_ZERO",)),
    "custom": ("custom", "default", False, (REGION,), ("UNKNOWN",)),
    "triton": ("triton", "default", True, (REGION,), ("UNKNOWN",)),
}


def doubling_kernel():
    """A kernel of the program's own, as its text would have it."""
    import triton
    import triton.language as tl

    @triton.jit
    def doubled(x, out, count, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + at, 2 * tl.load(x + at, mask=at < count), mask=at < count)

    return doubled, triton


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        kernel, triton = Doubled.kernel
        x = x.contiguous()
        out = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
        return out

    @staticmethod
    def backward(ctx, gradient):
        return 2 * gradient


class Block(nn.Module):
    def __init__(self, what):
        super().__init__()
        self.what = what
        self.norm, self.qkv, self.out = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x, dial):
        q, k, v = self.qkv(self.norm(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4).unbind(0)
        if self.what == "flex":
            from torch.nn.attention.flex_attention import flex_attention
            seen = flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: s / dial)
        elif self.what == "attention":
            seen = nn.functional.scaled_dot_product_attention(q, k / dial, v, is_causal=True)
        else:
            seen = nn.functional.scaled_dot_product_attention(q, k, v)
            if self.what == "dropout":
                seen = nn.functional.dropout(seen, 0.1)
        y = self.out(seen.transpose(1, 2).flatten(2))
        if self.what == "custom":
            y = torch.ops.nanquest_trial.doubled(y)
        if self.what == "triton":
            y = Doubled.apply(y)
        if self.what in ("log", "dropout", "custom", "triton"):
            y = y + (y.sigmoid() + dial).log()
        return x + y


class Net(nn.Module):
    def __init__(self, what):
        super().__init__()
        self.first, self.blocks, self.last = nn.Linear(8, WIDTH), nn.ModuleList([Block("none"), Block(what)]), nn.Linear(WIDTH, 4)

    def forward(self, x, dial):
        x = self.first(x)
        for block in self.blocks:
            x = block(x, dial)
        return self.last(x).square().mean()


def own_operator():
    @torch.library.custom_op("nanquest_trial::doubled", mutates_args=())
    def doubled(x: torch.Tensor) -> torch.Tensor:
        return 2 * x

    doubled.register_fake(lambda x: torch.empty_like(x))
    doubled.register_autograd(lambda ctx, gradient: 2 * gradient)


def train(kind, device, bad, out):
    what, mode = KINDS[kind][:2]
    torch.manual_seed(0)
    if what == "custom":
        own_operator()
    if what == "triton":
        Doubled.kernel = doubling_kernel()
    model = Net(what).to(device)
    compiled = torch.compile(model, mode=mode)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    wrong = 0.0 if what in ("flex", "attention") else -2.0
    for step in range(STEPS):
        x = torch.randn(2, ROWS, 8).to(device)
        optimizer.zero_grad()
        with torch.autocast(device, torch.bfloat16, enabled=what in ("attention", "flex")):
            loss = compiled(x, torch.tensor(wrong if bad and step == BAD else 1.0, device=device))
        loss.backward()
        optimizer.step()
    torch.save([p.detach().cpu() for p in model.parameters()], out)


def run(options, kind, level, scratch, bad=False):
    """(weights, the probe's lines, files) of one training in a process of its own; level "": without the probe."""
    folder = scratch / f"{kind}-{level or 'alone'}-{'bad' if bad else 'well'}"
    folder.mkdir()
    program = [sys.executable, str(Path(__file__).resolve()), "--device", options.device, "--child", kind, "--out", str(folder / "out.pt")]
    command = program + ["--bad"] * bad
    if level:
        command = [sys.executable, "-m", "nanquest", "run", "--run-dir", str(folder / "run"), "--level", level, "--watch-every", "0", "--", *command]
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([str(PACKAGE), os.environ.get("PYTHONPATH", "")]))
    process = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    if process.returncode or not (folder / "out.pt").exists():
        raise RuntimeError(process.stderr[-1500:])
    files = sorted((folder / "run" / "incidents").glob("*.r0.h5"))
    return torch.load(folder / "out.pt"), process.stderr, files


def healthy(options, kind, scratch):
    alone, again = (run(options, kind, "", scratch / str(i))[0] for i in range(2))
    repeats = all(map(torch.equal, alone, again))
    for level in ("trace", "watch"):
        seen, said, files = run(options, kind, level, scratch)
        if "the probe is off" in said or f"no incident in {STEPS} steps" not in said:
            yield f"{kind}: {level}", said[-300:].replace("\n", " | "), False
        same = all(map(torch.equal, alone, seen))
        yield f"{kind}: {level}, weights", "the same bits" if same else "OTHER BITS" if repeats else "other bits each time", same or not repeats
        yield f"{kind}: {level}, alarms", f"{len(files)}", not files


def failing(options, kind, scratch):
    ops, causes = KINDS[kind][3:]
    _, said, files = run(options, kind, "trace", scratch, bad=True)
    if not files:
        yield f"{kind}: bad step", "no file: " + said[-400:].replace("\n", " | "), False
        return
    replay = subprocess.run([str(Path(os.environ["NANQUEST_BIN"]) / "nanquest-replay"), "-q", str(files[0])],
                            capture_output=True, text=True, timeout=280)
    report = files[0].with_suffix(".json")
    if not report.exists():
        yield f"{kind}: bad step", replay.stderr[-300:], False
        return
    v = json.loads(report.read_text())
    culprit = v.get("culprit") or {}
    right = v["step"] == BAD and culprit.get("op") in ops and v["cause"] in causes
    if ops != (REGION,):
        right = right and culprit.get("inside") == REGION and culprit.get("module") == "blocks.1"
    yield f"{kind}: bad step", f"step {v['step']}, {culprit.get('op')} in {culprit.get('module')}, {v['cause']}", right
    yield f"{kind}: bad step, replayed", json.dumps(v["reproduction"])[:160], None
    for line in v.get("not_tested", []) if not right or ops == (REGION,) else []:
        yield f"{kind}: not tested", line[:300], None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--kinds", default="")
    parser.add_argument("--jobs", type=int, default=min(6, os.cpu_count() or 1))
    parser.add_argument("--child")
    parser.add_argument("--out")
    parser.add_argument("--bad", action="store_true")
    options = parser.parse_args()
    if options.child:
        return train(options.child, options.device, options.bad, options.out)
    kinds = [k for k in (options.kinds.split(",") if options.kinds else KINDS) if options.device != "cpu" or not KINDS[k][2]]
    short = False
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        def lines(kind, which):
            place = Path(scratch) / f"{kind}-{which.__name__}"
            for i in ("", "0", "1"):
                (place / i).mkdir(parents=True)
            try:
                return list(which(options, kind, place))
            except Exception as error:  # noqa: BLE001 (it is a line of the table)
                return [(f"{kind}: {which.__name__}", f"{type(error).__name__}: {error}", False)]

        for found in [pool.submit(lines, kind, which) for kind in kinds for which in (healthy, failing)]:
            for what, value, ok in found.result():
                short = short or ok is False
                print(f"{what:36} {value:60} {'' if ok is None else 'ok' if ok else 'SHORT'}".rstrip(), flush=True)
    return int(short)


if __name__ == "__main__":
    sys.exit(main())
