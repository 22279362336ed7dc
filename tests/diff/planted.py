"""A small language model that trains two steps, with one thing different if one is named: planted.py [NAME].

Both sides of a comparison run this file; one of them with a name of truth.py. Every difference is one that people make
when they port or refactor a model.
"""

import math
import sys

import torch
from torch import nn
from torch.nn import functional as F

PLANT = sys.argv[1] if len(sys.argv) > 1 else ""
VOCABULARY, WIDTH, HEADS, LENGTH, BATCH = 61, 32, 4, 24, 6


class RMSNorm(nn.Module):
    def __init__(self, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(WIDTH)), eps

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class Attention(nn.Module):
    def __init__(self, index):
        super().__init__()
        self.index, self.qkv, self.out = index, nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        size = WIDTH // HEADS
        base = 500.0 if PLANT == "rope-base" else 10000.0
        angles = torch.arange(LENGTH)[:, None] * base ** (-torch.arange(0, size, 2) / size)
        self.register_buffer("cos", angles.cos().repeat(1, 2), persistent=False)
        self.register_buffer("sin", angles.sin().repeat(1, 2), persistent=False)

    def turned(self, x):
        first, second = x.chunk(2, -1)
        return x * self.cos + torch.cat((-second, first), -1) * self.sin

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        q, k = self.turned(q), self.turned(k)
        size = q.shape[-1]
        scale = 1 / size if PLANT == "attention-scale" and self.index == 1 else 1 / math.sqrt(size)
        diagonal = 1 if PLANT == "mask-off-by-one" else 0
        seen = torch.ones(length, length, dtype=torch.bool).tril(diagonal)
        weights = ((q @ k.transpose(-1, -2)) * scale).masked_fill(~seen, -torch.inf).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, length, WIDTH))


class Block(nn.Module):
    def __init__(self, index):
        super().__init__()
        self.index = index
        self.norm1 = nn.LayerNorm(WIDTH, eps=1e-6 if PLANT == "norm-eps" and index == 1 else 1e-5)
        self.attention, self.norm2 = Attention(index), RMSNorm(1e-3 if PLANT == "rms-eps" and index == 0 else 1e-6)
        self.up, self.gate = nn.Linear(WIDTH, 64), nn.Linear(WIDTH, WIDTH)
        self.down = nn.Linear(64, WIDTH)
        self.dropout = nn.Dropout(0.2 if PLANT == "dropout" and index == 1 else 0.1)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        y = self.norm2(x)
        bias = None if PLANT == "missing-bias" and self.index == 1 else self.down.bias
        z = F.linear(F.gelu(self.up(y)), self.down.weight, bias)
        weight = self.gate.weight.t() if PLANT == "transposed-weight" and self.index == 0 else self.gate.weight
        return x + self.dropout(z * torch.sigmoid(F.linear(y, weight, self.gate.bias)))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList(Block(index) for index in range(2))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def parameters_of(model):
    decayed = [p for n, p in model.named_parameters() if "norm" not in n or PLANT == "decay-on-norms"]
    kept = [p for n, p in model.named_parameters() if "norm" in n and PLANT != "decay-on-norms"]
    return [{"params": decayed, "weight_decay": 0.1}, *([{"params": kept, "weight_decay": 0.0}] if kept else [])]


torch.manual_seed(1)
model = Model()
for parameter in model.parameters():
    if parameter.dim() == 1:
        nn.init.normal_(parameter, 0.5, 0.2)
optimizer = torch.optim.AdamW(parameters_of(model), lr=1e-3, eps=1e-5 if PLANT == "optimizer-eps" else 1e-8)
batches = torch.Generator().manual_seed(5)
torch.manual_seed(7)
for _ in range(2):
    tokens = torch.randint(0, VOCABULARY - 1, (BATCH, LENGTH + 1), generator=batches)
    if PLANT == "tokens-off-by-one":
        tokens = tokens + 1
    loss = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
