"""Ten steps, of which some are made in a pause; a bad one spoils nothing, as the program sees to it.

usage: paused.py leaves-out|puts-back|by-hand FIRST_PAUSED LAST_PAUSED BAD,BAD,... WEIGHTS_FILE
"""
import copy
import sys

import torch
from torch import nn

import nanquest

way, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
bad = [int(number) for number in sys.argv[4].split(",")]
torch.manual_seed(3)
model = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.LayerNorm(32), nn.Dropout(0.1), nn.Linear(32, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)


def update():
    if way != "by-hand":
        return optimizer.step()
    for parameter in model.parameters():
        parameter.data.add_(parameter.grad, alpha=-0.1)


def train(step):
    x = torch.randn(16, 8)
    if step in bad:
        x[2, 3] = float("nan")
    before = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
    model.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    if way != "leaves-out" or loss.isfinite():
        update()
    if step in bad and way != "leaves-out":
        model.load_state_dict(before[0])
        optimizer.load_state_dict(before[1])


step = 0
while step < 10:
    if step == first and first == 0:
        nanquest.pause()
        while step <= last:
            train(step)
            step += 1
        nanquest.resume()
    elif step == first:
        with nanquest.pause():
            with nanquest.pause():  # the inner one ends nothing
                train(step)
            step += 1
            while step <= last:
                train(step)
                step += 1
    train(step)
    step += 1
torch.save(model.state_dict(), sys.argv[5])
