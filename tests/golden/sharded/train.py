"""Made step-00000003.r0.h5 and .r1.h5: two processes, each with a part of every weight; rank 1's part is NaN in step 3.

torchrun's variables for two ranks, then: nanquest run --level watch -- python train.py
"""
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(4)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.BatchNorm1d(8), nn.Linear(8, 2))
model = fully_shard(net, mesh=torch.distributed.init_device_mesh("cpu", (size,)))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
torch.manual_seed(10 + rank)
for step in range(5):
    optimizer.zero_grad()
    if step == 3 and rank == 1:
        with torch.no_grad():
            net[0].weight.to_local().data.view(-1)[0] = float("nan")
    model(torch.randn(6, 4)).square().mean().backward()
    optimizer.step()
dist.destroy_process_group()
