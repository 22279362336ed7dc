"""Steps that differ by rounding alone: rounding.py NAME A|B. Each name is one way to compute the same in another order."""

import sys

import torch
from torch import nn
from torch.nn import functional as F

NAME, SIDE = sys.argv[1], sys.argv[2]
B = SIDE == "B"


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16)
        self.second, self.head = nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.Linear(32, 10)

    def forward(self, x):
        x = F.relu(self.norm(self.first(x)))
        return self.head(F.relu(self.second(x)).mean((2, 3)))


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(256), nn.Linear(256, 512), nn.Linear(512, 256)
        self.head = nn.Linear(256, 10)

    def forward(self, x):
        x = x + self.down(F.gelu(self.up(self.norm(x))))
        return self.head(torch.tanh(x))


torch.manual_seed(3)
torch.set_num_threads(2 if NAME == "threads" and B else 1)
model = Images() if NAME == "channels-last" else Layers()
x = torch.randn(8, 3, 16, 16) if NAME == "channels-last" else torch.randn(128, 256)
y = torch.randint(0, 10, (len(x),))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
if NAME == "channels-last" and B:
    model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
called = torch.compile(model) if NAME == "compiled" and B else model
if NAME == "bf16-compiled":
    called = torch.compile(model) if B else model
parts = 2 if NAME == "batch-split" and B else 1
for _ in range(2):
    for xs, ys in zip(x.chunk(parts), y.chunk(parts)):
        with torch.autocast("cpu", torch.bfloat16, enabled=NAME.startswith("bf16")):
            loss = F.cross_entropy(called(xs), ys) / parts
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
