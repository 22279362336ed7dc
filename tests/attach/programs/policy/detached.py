"""A model in bf16 that goes to fp32; then the probe is taken away, and in the end attached anew. Prints "trained" if the program
could go on with its batches in bf16."""
import sys

import torch
from torch import nn

import nanquest

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.Linear(8, 1)).to(torch.bfloat16)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
nanquest.attach(run_dir=sys.argv[1] + "/first", level="guard", on_incident="fallback_fp32")
for step in range(12):
    if step == 4:
        nanquest.detach()
    if step == 8:
        nanquest.attach(run_dir=sys.argv[1] + "/second", level="guard", on_incident="fallback_fp32")
    loss = model(torch.randn(3, 4, dtype=torch.bfloat16)).square().mean() * (float("nan") if step == 1 else 1.0)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
assert model[0].weight.dtype == torch.float32
print("trained")
