"""One training step, eager or by torch.compile: regions.py eager|compiled [PLANT]. PLANT: scale (of the second block's attention), eps
(of the first block's second norm), loss (its smoothing, outside of the model)."""

import sys

import torch
from torch import nn
from torch.nn import functional as F

WAY, PLANT = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
WIDTH = 16


class Attention(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale, self.qkv, self.out = scale, nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        return self.out(torch.softmax(q @ k.transpose(-1, -2) * self.scale, -1) @ v)


class Block(nn.Module):
    def __init__(self, scale=WIDTH**-0.5, eps=1e-5):
        super().__init__()
        self.first, self.attention, self.norm = nn.LayerNorm(WIDTH), Attention(scale), nn.LayerNorm(WIDTH, eps=eps)
        self.up, self.down = nn.Linear(WIDTH, 24), nn.Linear(24, WIDTH)

    def forward(self, x):
        x = x + self.attention(self.first(x))
        return x + self.down(F.gelu(self.up(self.norm(x))))


torch.manual_seed(1)
model = nn.Sequential(Block(eps=1e-3 if PLANT == "eps" else 1e-5), Block(scale=0.3 if PLANT == "scale" else WIDTH**-0.5), nn.Linear(WIDTH, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
called = torch.compile(model) if WAY == "compiled" else model
for _ in range(2):
    x, y = torch.randn(4, 12, WIDTH), torch.randint(0, 10, (48,))
    F.cross_entropy(called(x).flatten(0, 1), y, label_smoothing=0.1 * (PLANT == "loss")).backward()
    optimizer.step()
    optimizer.zero_grad()
