"""Saves its state in every way, twice: clean after step 2, and after SPOILED (weight, average, moment, batch, nothing) was made NaN in
step 3. With "on" a refused write is caught and the program goes on, and removes its first files as a rotation does.

usage: every_way.py SPOILED [on]
"""
import io
import os
import shutil
import sys

from safetensors.torch import save_file  # before torch: it is still being imported when the probe comes

import torch
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.api import CheckpointException
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

spoiled, goes_on = sys.argv[1], sys.argv[2:] == ["on"]
torch.manual_seed(1)
model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Linear(16, 1))
average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9), use_buffers=True)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)


def through_a_buffer(value, filepath):
    buffer = io.BytesIO()
    torch.save(value, buffer)
    with open(filepath, "wb") as file:
        file.write(buffer.getvalue())


def into_an_open_file(value, step):
    with open(f"out/opened-{step}.pt", "wb") as file:
        torch.save(value, file)


ways = {
    "weights": lambda n: torch.save(model.state_dict(), f"out/weights-{n}.pt"),
    "half": lambda n: torch.save({k: v.bfloat16() for k, v in model.state_dict().items()}, f"out/half-{n}.pt"),
    "model": lambda n: torch.save(model, f"out/model-{n}.pt"),
    "all": lambda n: torch.save(
        {"model": model.state_dict(), "ema": average.state_dict(), "optimizer": optimizer.state_dict(), "epoch": n}, f"out/all-{n}.pt"
    ),
    "optimizer": lambda n: torch.save(optimizer.state_dict(), f"out/folder-{n}/optimizer.pt"),
    "average": lambda n: torch.save(average.module.state_dict(), f"out/average-{n}.pt"),
    "shadow": lambda n: torch.save({"shadow_params": [p.clone() for p in average.parameters()]}, f"out/shadow-{n}.pt"),
    "safetensors": lambda n: save_file(model.state_dict(), f"out/weights-{n}.safetensors"),
    "distributed": lambda n: dcp.save({"model": model.state_dict(), "average": average.state_dict()}, checkpoint_id=f"out/distributed-{n}"),
    "buffer": lambda n: through_a_buffer({"state_dict": model.state_dict()}, f"out/buffer-{n}.ckpt"),
    "opened": lambda n: into_an_open_file({"m": model.state_dict(), "o": optimizer.state_dict()}, n),
}


def save_all(n):
    os.makedirs(f"out/folder-{n}", exist_ok=True)
    for way, save in ways.items():
        try:
            save(n)
        except (Exception, CheckpointException) as error:  # the latter is a BaseException
            if not goes_on:
                raise
            print("refused", way, type(error).__name__, flush=True)


for step in range(5):
    x = torch.randn(16, 8)
    if step == 3 and spoiled == "batch":
        x[2, 3] = float("nan")
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), x.sum(1, keepdim=True)).backward()
    optimizer.step()
    average.update_parameters(model)
    if step == 3:
        with torch.no_grad():
            if spoiled == "weight":
                model[2].weight[0, 5] = float("nan")
            if spoiled == "average":
                average.module[2].weight[0, 5] = float("inf")
            if spoiled == "moment":
                optimizer.state[model[0].weight]["exp_avg"][3, 4] = float("nan")
        save_all(4)
        if goes_on:
            os.remove("out/weights-2.pt")
            shutil.rmtree("out/folder-2")
            os.remove("out/all-1.pt")
    elif step in (1, 2):
        save_all(step)
print("left", *sorted(os.listdir("out")))
