"""A batch whose targets are all ignored, in the ways that losses leave them out: cross_entropy itself, a mean over the rest, a
sum over a mask divided by its sum, a selection, class weights.

    ignored.py mean|masked|divided|selected|gathered|weighted
"""

import sys

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
way = sys.argv[1]
IGNORED = 255 if way == "gathered" else -100
net = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 10))
opt = torch.optim.AdamW(net.parameters(), 1e-3)
for step in range(10):
    x, labels = torch.randn(16, 16), torch.randint(0, 10, (16,))
    labels[3:5] = IGNORED
    if step == 6:
        labels[:] = IGNORED
    logits = net(x)
    if way == "mean":
        loss = F.cross_entropy(logits, labels)
    elif way == "masked":
        loss = F.cross_entropy(logits, labels, reduction="none")[labels != IGNORED].mean()
    elif way == "divided":
        valid = (labels != IGNORED).float()
        loss = (F.cross_entropy(logits, labels, reduction="none") * valid).sum() / valid.sum()
    elif way == "selected":
        keep = labels >= 0
        loss = F.cross_entropy(logits[keep], labels[keep])
    elif way == "gathered":
        valid = labels.ne(IGNORED)
        picked = logits.log_softmax(-1).gather(1, labels.masked_fill(~valid, 0).unsqueeze(1)).squeeze(1)
        loss = -(picked * valid).sum() / valid.sum()
    else:
        loss = F.cross_entropy(logits, labels, weight=torch.linspace(0.5, 1.5, 10))
    opt.zero_grad()
    loss.backward()
    opt.step()
