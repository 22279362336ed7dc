"""Eight steps of a small classifier; step 6 goes wrong: by its batch, by a weight that was set before it, or by a batch in
memory that the program fills anew for every step.

usage: twin.py batch|weight|in-place|shapes [WEIGHTS_FILE]
"""
import sys

import torch
from torch import nn

what = sys.argv[1]
torch.manual_seed(3)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
x, weights = torch.empty(16, 8), None
for step in range(8):
    rows = 15 if what == "shapes" and step == 6 else 16
    if what == "in-place":
        x.copy_(torch.randn(16, 8))
    else:
        x = torch.randn(rows, 8)
    y = torch.randint(0, 4, (rows,))
    weights = torch.rand(rows)  # of the samples: the model does not get them
    if step == 6 and what == "weight":
        model[3].weight.detach().numpy()[1, 2] = float("nan")  # by no operation of PyTorch: not on record
    elif step == 6:
        x[2, 3] = float("inf")
    optimizer.zero_grad()
    loss = (nn.functional.cross_entropy(model(x), y, reduction="none") * weights).mean()
    loss.backward()
    optimizer.step()
if len(sys.argv) > 2:
    torch.save(model.state_dict(), sys.argv[2])
