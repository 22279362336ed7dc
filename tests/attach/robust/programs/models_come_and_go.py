"""A search over models: each is trained for a few steps, copied, pickled, saved, and dropped.

Prints what it computed, and on stderr by how many MiB the process grew over the second half.
"""
import copy
import gc
import io
import pickle
import sys
import weakref

import torch
from torch import nn

rounds, width = int(sys.argv[1]), int(sys.argv[2])


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 2**20


def one(seed):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(16, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, width), nn.Linear(width, 2))
    optimizer = torch.optim.AdamW(model.parameters())
    average = copy.deepcopy(model)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randn(4, 16)).square().mean().backward()
        optimizer.step()
        with torch.no_grad():
            for mean, now in zip(average.parameters(), model.parameters()):
                mean.lerp_(now, 0.1)
    again = pickle.loads(pickle.dumps(model))
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    assert all(torch.equal(a, b) for a, b in zip(again.state_dict().values(), model.state_dict().values()))
    return weakref.ref(model), weakref.ref(next(model.parameters())), float(average[0].weight.detach().double().sum())


gone = 0
for i in range(rounds):
    if i == rounds // 2:
        gc.collect()
        half = resident()
    model, parameter, number = one(i)
    gc.collect()
    gone += model() is None and parameter() is None
    print(i, number)
print(f"{gone} of {rounds} models were freed when they were dropped")
print(f"grown {resident() - half:.1f}", file=sys.stderr)
