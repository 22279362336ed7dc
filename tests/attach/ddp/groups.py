"""Four processes in two pairs: gradients are averaged in a pair by one group, then between the pairs by another; in step 2 rank 2 has a
bad batch.

usage: groups.py SAVE_AS
"""

import sys

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank = dist.get_rank()
pairs, across = [dist.new_group(ranks) for ranks in ([0, 1], [2, 3])], [dist.new_group(ranks) for ranks in ([0, 2], [1, 3])]
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
torch.manual_seed(10 + rank)
for step in range(4):
    x = torch.randn(6, 4)
    if step == 2 and rank == 2:
        x[3, 1] = float("inf")
    optimizer.zero_grad()
    (model(x) - 1).square().mean().backward()
    for group in (pairs[rank // 2], across[rank % 2]):
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad, group=group)
            parameter.grad /= 2
    optimizer.step()
torch.save(model.state_dict(), f"{sys.argv[1]}.{rank}")
dist.destroy_process_group()
