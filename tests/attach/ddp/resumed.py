"""Two ranks that go on from a torch.distributed.checkpoint, weights spread (fsdp2) or alike (ddp).

usage: resumed.py save | resumed.py fsdp2|ddp clean|bad [new-schedule]
"""
import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
if sys.argv[1] == "ddp":
    model = nn.parallel.DistributedDataParallel(model)
else:
    mesh = init_device_mesh("cpu", (2,))
    fully_shard(model[0], mesh=mesh)
    fully_shard(model, mesh=mesh)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 10))


def train(steps):
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(4, 8)).square().mean().backward()
        optimizer.step()
        scheduler.step()


def state():
    of_model, of_optimizer = get_state_dict(model, optimizer)
    return {"model": of_model, "optimizer": of_optimizer, "scheduler": scheduler.state_dict()}


if sys.argv[1] == "save":
    train(12)
    dcp.save(found := state(), checkpoint_id="clean")
    with torch.no_grad():
        found["model"]["2.weight"].to_local()[0, 3] = float("nan")  # of each rank's part
    dcp.save(found, checkpoint_id="bad")
else:
    dcp.load(found := state(), checkpoint_id=sys.argv[2])
    set_state_dict(model, optimizer, model_state_dict=found["model"], optim_state_dict=found["optimizer"])
    if "new-schedule" not in sys.argv:
        scheduler.load_state_dict(found["scheduler"])
    train(3)
dist.destroy_process_group()
