"""Saves a large weight that holds a NaN, and a clean one. Prints the names of the threads that are started meanwhile."""
import threading

from safetensors.torch import save_file

import torch
from torch import nn

torch.manual_seed(1)
model = nn.Linear(2048, 1024)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
own = threading.Thread.start


def start(self):
    print(self.name, flush=True)
    own(self)


for step in range(2):
    optimizer.zero_grad()
    model(torch.randn(4, 2048)).square().mean().backward()
    optimizer.step()
    if step:
        with torch.no_grad():
            model.weight[1000, 2000] = float("nan")
    threading.Thread.start = start
    torch.save(model.state_dict(), f"weights-{step}.pt")
    save_file(model.state_dict(), f"weights-{step}.safetensors")
    threading.Thread.start = own
