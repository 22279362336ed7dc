"""Eight steps of a small model with private names, weights, tokens and pixels; the pixels of step 6 hold an Inf."""
import torch
from torch import nn


class PlantedHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.planted_table = nn.Embedding(512, 32)
        self.planted_out = nn.Linear(32, 512)

    def forward(self, ids, pixels):
        return self.planted_out(self.planted_table(ids) + pixels)


torch.manual_seed(0)
model = PlantedHead()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(8):
    ids = torch.randint(0, 512, (4, 16))
    pixels = torch.rand(4, 16, 32) * 0.9 + 0.05
    if step == 6:
        pixels[2, 3, 4] = float("inf")
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(ids, pixels).view(-1, 512), ids.view(-1))
    loss.backward()
    optimizer.step()
