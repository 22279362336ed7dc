"""Models with 40 MB of buffers come and go; then one with 120 MB is trained whose parts are replaced."""
import sys

import torch
from torch import nn


def train(model, renew=lambda: None):
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    for step in range(3):
        renew()
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()


def made(megabytes):
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
    for number in range(megabytes // 40):
        model.register_buffer(f"large{number}", torch.zeros(10**7))
    return model


for number in range(3):
    train(made(40))
print("one model", file=sys.stderr, flush=True)
model = made(120)


def renew():
    model[0] = nn.Linear(4, 4)


train(model, renew)
