"""Bad batches at the given steps, whose updates are left out: each is an incident of its own. The files are about 3 MB.

usage: many.py STEP,STEP,... WEIGHTS_FILE
"""
import sys

import torch

bad = [int(number) for number in sys.argv[1].split(",")]
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 8192), torch.nn.GELU(), torch.nn.Linear(8192, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
for step in range(40):
    x = torch.randn(8, 64)
    if step in bad:
        x[2, 3] = float("nan")
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    if loss.isfinite():
        optimizer.step()
torch.save(model.state_dict(), sys.argv[2])
