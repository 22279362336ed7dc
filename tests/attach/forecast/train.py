"""One small training in mixed precision; it is not known whether it will fail: architecture, seed and rate decide."""

import json
import math
import sys

import torch
from torch import nn
import torch.nn.functional as F


class Block(nn.Module):
    """Attention and a feed-forward part with residuals; `squared`: squared ReLU, whose outputs grow fast."""

    def __init__(self, width, heads, norm, squared):
        super().__init__()
        self.heads = heads
        self.first = nn.LayerNorm(width) if norm else nn.Identity()
        self.second = nn.LayerNorm(width) if norm else nn.Identity()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.squared = squared

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in self.qkv(self.first(x)).chunk(3, -1))
        scores = q @ k.transpose(-1, -2) / math.sqrt(width // self.heads)
        scores = scores.masked_fill(torch.ones(length, length, dtype=torch.bool).triu(1), float("-inf"))
        x = x + self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, width))
        h = self.up(self.second(x))
        return x + self.down(F.relu(h).square() if self.squared else F.gelu(h))


class Decoder(nn.Module):
    def __init__(self, blocks=2, norm=True, squared=False):
        super().__init__()
        self.embed = nn.Embedding(64, 48)
        self.blocks = nn.ModuleList(Block(48, 4, norm, squared) for _ in range(blocks))
        self.norm, self.head = nn.LayerNorm(48), nn.Linear(48, 64)

    def forward(self, x):
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Residual(nn.Module):
    """Convolutions with residuals and no norm: activations grow with depth and rate."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, padding=1)
        self.convs = nn.ModuleList(nn.Conv2d(16, 16, 3, padding=1) for _ in range(6))
        self.head = nn.Linear(16, 10)

    def forward(self, x):
        x = self.stem(x)
        for conv in self.convs:
            x = x + F.relu(conv(x))
        return self.head(x.mean((2, 3)))


class Recurrent(nn.Module):
    """A gated unit written out, with a readout that multiplies its states."""

    def __init__(self):
        super().__init__()
        self.embed, self.wide = nn.Embedding(64, 32), nn.Linear(64, 32)
        self.up, self.head = nn.Linear(32, 128), nn.Linear(128, 64)

    def forward(self, x):
        x = self.embed(x)
        h, all_h = torch.zeros_like(x[:, 0]), []
        for t in range(x.shape[1]):
            h = h + F.relu(self.wide(torch.cat([x[:, t], h], -1))) * 0.5
            all_h.append(h)
        return self.head(F.relu(self.up(torch.stack(all_h, 1))))


class Mixer(nn.Module):
    """Two-factor gates (GLU) without norms: products of activations."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(20, 64)
        self.gates = nn.ModuleList(nn.Linear(64, 128) for _ in range(4))
        self.backs = nn.ModuleList(nn.Linear(64, 64) for _ in range(4))
        self.head = nn.Linear(64, 1)

    def forward(self, x):
        x = self.embed(x)
        for gate, back in zip(self.gates, self.backs):
            a, b = gate(x).chunk(2, -1)
            x = x + back(a * b)
        return self.head(x)


def text(generator, batch=8, length=24):
    """Sequences that follow a rule, so that there is something to learn."""
    start = torch.randint(0, 64, (batch, 1), generator=generator)
    step = torch.randint(1, 5, (batch, 1), generator=generator)
    x = (start + step * torch.arange(length + 1)) % 64
    return x[:, :-1], x[:, 1:]


def images(generator, batch=8):
    y = torch.randint(0, 10, (batch,), generator=generator)
    return torch.randn(batch, 3, 12, 12, generator=generator) + y.view(-1, 1, 1, 1) * 0.3, y


def numbers(generator, batch=32):
    x = torch.randn(batch, 20, generator=generator)
    return x, (x[:, :5].prod(1, keepdim=True) + x.sum(1, keepdim=True))


def classes(logits, y):
    return F.cross_entropy(logits.flatten(0, -2).float(), y.flatten())


ARCHITECTURES = {
    "decoder": (lambda: Decoder(), text, classes),
    "decoder-squared": (lambda: Decoder(squared=True), text, classes),
    "decoder-plain": (lambda: Decoder(3, norm=False), text, classes),
    "residual": (Residual, images, classes),
    "recurrent": (Recurrent, text, classes),
    "mixer": (Mixer, numbers, lambda out, y: F.mse_loss(out.float(), y)),
}


def main(architecture, seed, rate, steps, out):
    torch.manual_seed(int(seed))
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(int(seed) + 1)
    make, batches, loss_of = ARCHITECTURES[architecture]
    model, steps = make(), int(steps)
    optimizer = torch.optim.AdamW(model.parameters(), lr=float(rate))
    warm_up = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 60))
    first_bad = None
    for step in range(steps):
        x, y = batches(generator)
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.float16):
            loss = loss_of(model(x), y)
        loss.backward()
        if not torch.isfinite(loss):
            first_bad = step
            break
        optimizer.step()
        warm_up.step()
    with open(out, "w") as file:
        json.dump({"first_bad": first_bad, "steps": step + 1}, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
