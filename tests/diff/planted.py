"""A small language model that trains two steps, with one thing different if one is named: planted.py [NAME].

Both sides of a comparison run this file: one with a name of truth.py, the other with the base of that name (BASES), which is the plain
model if there is none. Every difference is one that people make when they port or refactor a model.
"""

import math
import sys

import torch
from torch import nn
from torch.nn import functional as F

PLANT = sys.argv[1] if len(sys.argv) > 1 else ""
TIED, PADDED = PLANT in ("tied", "untied"), PLANT in ("padded", "positions-after-padding")
SUMMED, CLIPPED = PLANT in ("summed", "bf16-accumulation"), PLANT in ("clipped", "clip-norm")
PADDING = 5  # tokens before the first of every second sample
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
        heads = self.qkv(x)
        if PLANT == "head-order" and self.index == 1:
            q, k, v = heads.view(batch, length, HEADS, 3, -1).permute(3, 0, 2, 1, 4)
        else:
            q, k, v = heads.view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
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
        gelu = F.gelu(self.up(y), approximate="tanh" if PLANT == "gelu-tanh" and self.index == 0 else "none")
        z = F.linear(gelu, self.down.weight, bias)
        weight = self.gate.weight.t() if PLANT == "transposed-weight" and self.index == 0 else self.gate.weight
        return x + self.dropout(z * torch.sigmoid(F.linear(y, weight, self.gate.bias)))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList(Block(index) for index in range(2))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)
        if TIED:
            self.head.weight = self.embedding.weight if PLANT == "tied" else nn.Parameter(self.embedding.weight.detach().clone())
        if PADDED:
            self.positions = nn.Embedding(LENGTH, WIDTH)

    def positions_of(self, tokens):
        if PLANT == "positions-after-padding":
            return torch.arange(tokens.shape[1])
        return ((tokens != VOCABULARY - 1).cumsum(-1) - 1).clamp(min=0)

    def forward(self, tokens):
        x = self.embedding(tokens)
        if PADDED:
            x = x + self.positions(self.positions_of(tokens))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def parameters_of(model):
    decayed = [p for n, p in model.named_parameters() if "norm" not in n or PLANT == "decay-on-norms"]
    kept = [p for n, p in model.named_parameters() if "norm" in n and PLANT != "decay-on-norms"]
    return [{"params": decayed, "weight_decay": 0.1}, *([{"params": kept, "weight_decay": 0.0}] if kept else [])]


def loss_of(logits, targets):
    if not SUMMED:
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())
    total = torch.zeros((), dtype=torch.bfloat16 if PLANT == "bf16-accumulation" else torch.float32)
    for sample, target in zip(logits, targets):
        for one in F.cross_entropy(sample, target, reduction="none"):
            total = total + one.to(total.dtype)
    return total.float() / targets.numel()


torch.manual_seed(1)
model = Model()
if PLANT == "other-init":
    nn.init.normal_(model.blocks[1].up.weight, 0, 0.02, generator=torch.Generator().manual_seed(9))
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
    if PADDED:
        tokens[::2, :PADDING] = VOCABULARY - 1
    loss = loss_of(model(tokens[:, :-1]), tokens[:, 1:])
    loss.backward()
    if CLIPPED:
        nn.utils.clip_grad_norm_(model.parameters(), 0.5 if PLANT == "clip-norm" else 1.0)
    optimizer.step()
    optimizer.zero_grad()
