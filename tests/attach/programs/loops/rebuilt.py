"""The model is built anew twice, as a search over settings does; the third one meets a NaN in its step 1, which is step 5
of the program."""
import torch
from torch import nn

torch.manual_seed(0)
for trial in range(3):
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(2):
        x = torch.randn(3, 4)
        if (trial, step) == (2, 1):
            x[1, 1] = float("nan")
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
