"""100 MB of weights, three times that with moments; prints its peak of resident memory in MB."""
import resource

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(*[nn.Linear(2048, 2048) for _ in range(6)])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step in range(8):
    loss = model(torch.randn(4, 2048)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1000)
