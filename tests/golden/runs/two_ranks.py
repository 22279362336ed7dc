"""Two processes train one model together; in step 40 a sample of rank 1 has a NaN. They made the run two_ranks:

nanquest run --on-incident stop --run-dir two_ranks -- torchrun --nproc-per-node 2 train.py; nanquest replay two_ranks/incidents/*.h5
"""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(16, 32)
        self.norm = nn.LayerNorm(32)
        self.head = nn.Linear(32, 4)

    def forward(self, rows):
        return self.head(self.norm(torch.relu(self.up(rows))))


model = DistributedDataParallel(Net())
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
torch.manual_seed(1 + rank)
for step in range(60):
    rows = torch.randn(8, 16)
    if step == 40 and rank == 1:
        rows[5, 2] = float("nan")
    optimizer.zero_grad()
    loss = (model(rows) - rows[:, :4].nan_to_num()).square().mean()
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
