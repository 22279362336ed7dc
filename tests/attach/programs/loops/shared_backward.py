"""A discriminator is trained on a real and on a made batch with one backward; the real batches of steps 2 and 4 are broken."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
weights = [p.detach().clone() for p in model.parameters()]
judged = nn.BCEWithLogitsLoss()
for step in range(6):
    real, made = torch.randn(3, 4), torch.randn(3, 4)
    if step in (2, 4):
        real[1, 2] = float("nan")
    optimizer.zero_grad()
    loss_real = judged(model(real), torch.ones(3, 1))
    loss_made = judged(model(made), torch.zeros(3, 1))
    (loss_real + loss_made).backward()
    optimizer.step()
    if step in (2, 4):  # as a run that keeps its last good weights would
        with torch.no_grad():
            for p, good in zip(model.parameters(), weights):
                p.copy_(good)
