"""A regression that goes bad in one of several ways, and can be resumed; it knows nothing of the probe.

    rehearsed.py MODE STEPS [resume=FILE] [save=FILE@STEP] [optimizer=adamw|sgd]

rate: the learning rate is too high, so that the values grow out of fp32; batch: the batch of step 40 holds a NaN; hopeless: from
step 40 on the loss is NaN whatever came before; half: activations of a growing size, in fp16; raises: as hopeless, but the program
looks at its loss and raises. Under torchrun the ranks train together, and the bad batch is rank 1's.
"""
import math
import os
import sys

import torch
from torch import nn

AT = 40
mode, steps = sys.argv[1], int(sys.argv[2])
given = dict(word.split("=") for word in sys.argv[3:])

torch.manual_seed(1)
data = torch.Generator().manual_seed(2)
model = nn.Linear(8, 1) if mode == "rate" else nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
rank = int(os.environ.get("RANK", 1))
if "RANK" in os.environ:
    torch.distributed.init_process_group("gloo")
    model = nn.parallel.DistributedDataParallel(model)
if given.get("optimizer", "sgd" if mode == "rate" else "adamw") == "sgd":
    optimizer = torch.optim.SGD(model.parameters(), lr=1.2 if mode == "rate" else 0.02)
else:
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
scaler = torch.amp.GradScaler("cpu", enabled=mode == "half", init_scale=16.0)
first = 0
if "resume" in given:
    state = torch.load(given["resume"])
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    first = state["step"]
for step in range(steps):
    x = torch.randn(32, 8, generator=data)
    y = x.sum(1, keepdim=True) + 0.1 * torch.randn(32, 1, generator=data)
    if step < first:
        continue
    if f"@{step}" in given.get("save", ""):
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, given["save"].split("@")[0])
    if mode == "batch" and step == AT and rank == 1:
        x[3, 2] = math.nan
    with torch.autocast("cpu", torch.float16, enabled=mode == "half"):
        out = model(x)
        if mode == "half":  # from step 40 on the product leaves fp16
            size = 2.0 ** (16 + (step - AT) // 8)
            out = (torch.ones(1, 1, dtype=out.dtype) * (size / 2)) * 2 / size * out
    loss = nn.functional.mse_loss(out.float(), y)
    if mode in ("hopeless", "raises") and step >= AT:
        loss = loss * math.nan
    if mode == "raises" and not math.isfinite(loss.item()):
        raise ArithmeticError("the loss is not finite")
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    scheduler.step()
    print(f"step {step} loss {loss.item():.4f}", flush=True)
if "RANK" in os.environ:
    del model, loss, out  # they hold the process group
    torch.distributed.destroy_process_group()
