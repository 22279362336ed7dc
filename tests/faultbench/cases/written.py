"""The program writes NaN into what its model computed."""
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
way = sys.argv[1]
first, last = nn.Linear(8, 16), nn.Linear(16, 1)
opt = torch.optim.SGD([*first.parameters(), *last.parameters()], 1e-2)


def written(h):
    nan, row = float("nan"), torch.arange(16)[:, None] == 3
    if way == "masked_fill":
        return h.masked_fill(row, nan)
    if way == "item":
        h = h.clone()
        h[3] = nan
        return h
    if way == "mask":
        h = h.clone()
        h[row.expand_as(h)] = nan
        return h
    if way == "where":
        return torch.where(row, torch.tensor(nan), h)
    if way == "fill":
        h = h.clone()
        h.select(0, 3).fill_(nan)
        return h
    if way == "index_fill":
        return h.index_fill(0, torch.tensor([3]), nan)
    if way == "pad":
        return F.pad(h[:15], (0, 0, 0, 1), value=nan)
    if way == "full":
        return torch.cat([h[:15], torch.full((1, 16), nan)])
    if way == "scatter":
        return h.scatter(0, torch.full((1, 16), 3), nan)
    if way == "index_put":
        return h.index_put((torch.tensor([3]),), torch.tensor(nan))
    if way == "masked_scatter":
        return h.masked_scatter(row.expand_as(h), torch.full((16,), nan))
    if way == "index_copy":
        return h.index_copy(0, torch.tensor([3]), torch.full((1, 16), nan))
    raise ValueError(way)


for step in range(8):
    h = first(torch.randn(16, 8)).relu()
    if step == 5:
        h = written(h)
    loss = last(h).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
