"""The shape of DPO in two processes: a model scores chosen and rejected texts, what is padding is left out by a mask, and the loss
compares the two. In step 3 rank 1's batch has a word whose embedding is near the end of fp32. Its square leaves the format in each
norm, and by the root of that infinity the word becomes zeros: the loss is finite, gradients are not.

usage: preferences.py ddp|alone bad|healthy SAVE_AS      (alone: one process, on rank 1's batches)
"""

import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

WORDS, WIDTH = 32, 16


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.head = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WORDS)
        self.first, self.up, self.last = Norm(), nn.Linear(WIDTH, WIDTH), Norm()

    def forward(self, tokens):
        words = self.words(tokens)
        return self.head(self.last(words + self.up(self.first(words)).tanh()))


def scores(model, tokens, kept):
    """The log-probability of each text, padding left out."""
    logits = model(tokens[:, :-1])
    each = torch.gather(logits.log_softmax(-1), 2, tokens[:, 1:, None]).squeeze(2)
    return torch.where(kept[:, 1:], each, 0.0).sum(1)


way, fault, save_as = sys.argv[1:]
rank = 1
if way == "ddp":
    dist.init_process_group("gloo")
    rank = dist.get_rank()
torch.manual_seed(0)
net = Scorer()
with torch.no_grad():
    net.words.weight[WORDS - 1] = 3e38
model = DistributedDataParallel(net) if way == "ddp" else net
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
torch.manual_seed(10 + rank)
for step in range(5):
    tokens, kept = torch.randint(0, WORDS - 1, (8, 7)), torch.arange(7) < torch.randint(4, 8, (8, 1))
    if fault == "bad" and step == 3 and rank == 1:
        tokens[2, 1] = WORDS - 1
    optimizer.zero_grad()
    chosen, rejected = scores(model, tokens, kept).chunk(2)
    loss = -nn.functional.logsigmoid(0.1 * (chosen - rejected)).mean()
    loss.backward()
    optimizer.step()
torch.save(net.state_dict(), f"{save_as}.{rank}")
model = None  # holds the process group: its threads would outlive its end and meet the interpreter's
if way == "ddp":
    dist.destroy_process_group()
