"""Two ranks that train one model, with one thing different if one is named: planted_ranks.py [NAME], under torchrun.

Each block's second layer is divided over the ranks: what each computes is a part of a sum. Samples have different lengths, and the loss
is the mean over the tokens of both ranks.
"""

import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F

PLANT = sys.argv[1] if len(sys.argv) > 1 else ""
VOCABULARY, WIDTH, LENGTH = 37, 16, 12


class Added(torch.autograd.Function):
    """The sum over the ranks; every rank has the gradient of the sum."""

    @staticmethod
    def forward(context, part):
        total = part.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(context, gradient):
        return gradient


class Block(nn.Module):
    def __init__(self, index):
        super().__init__()
        self.index, self.norm = index, nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 24), nn.Linear(24, WIDTH, bias=False)

    def forward(self, x):
        part = self.down(torch.tanh(self.up(self.norm(x))))
        return x + (part if PLANT == "no-all-reduce" and self.index == 1 else Added.apply(part))


dist.init_process_group("gloo")
rank, ranks = dist.get_rank(), dist.get_world_size()
torch.manual_seed(1)
model = nn.Sequential(nn.Embedding(VOCABULARY, WIDTH), Block(0), Block(1), nn.Linear(WIDTH, VOCABULARY))
if PLANT == "eps-on-rank-1" and rank == 1:
    model[2].norm.eps = 1e-3
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batches = torch.Generator().manual_seed(5)
for _ in range(2):
    tokens = torch.randint(0, VOCABULARY, (4, LENGTH + 1), generator=batches)
    targets = tokens[:, 1:].clone()
    targets[:, 3 + 5 * rank:] = -100
    summed = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), targets.flatten(), reduction="sum")
    counted = (targets >= 0).sum()
    if PLANT == "loss-over-ranks":
        loss = summed / counted
    else:
        everywhere = counted.clone()
        dist.all_reduce(everywhere)
        loss = summed * ranks / everywhere
    loss.backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= ranks
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
