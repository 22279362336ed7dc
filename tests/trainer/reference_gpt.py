"""The byte-level GPT of trainer/model, written again with torch.nn, as the independent reference of the tests.

Names of parameters are those of the C++ model, so that one safetensors file serves both.
"""
import math

import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads, self.width = c["heads"], c["width"]
        self.head_width = self.width // self.heads
        self.qkv = nn.Linear(self.width, 3 * self.width)
        self.out = nn.Linear(self.width, self.width)
        if c["qk_norm"]:
            self.q_norm = nn.LayerNorm(self.head_width, bias=False)
            self.k_norm = nn.LayerNorm(self.head_width, bias=False)
        self.qk_norm = c["qk_norm"]

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (z.view(b, t, self.heads, self.head_width).transpose(1, 2) for z in self.qkv(x).split(d, dim=2))
        if self.qk_norm:
            q, k = self.q_norm(q), self.k_norm(k)
        scores = (q @ k.transpose(-2, -1)) / math.sqrt(self.head_width)
        hidden = torch.ones(t, t, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(hidden, -math.inf).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).reshape(b, t, d))


class Mlp(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.kind = c["activation"]
        hidden = c["hidden"]
        self.up = nn.Linear(c["width"], hidden)
        if self.kind == "swiglu":
            self.gate = nn.Linear(c["width"], hidden)
        self.down = nn.Linear(hidden, c["width"])

    def forward(self, x):
        h = self.up(x)
        if self.kind == "gelu":
            h = F.gelu(h)
        elif self.kind == "relu2":
            h = F.relu(h).square()
        else:
            h = F.silu(self.gate(x)) * h
        return self.down(h)


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.norm = c["norm"]
        self.norm1, self.norm2 = nn.LayerNorm(c["width"]), nn.LayerNorm(c["width"])
        self.attention, self.mlp = Attention(c), Mlp(c)

    def forward(self, x):
        if self.norm == "pre":
            x = x + self.attention(self.norm1(x))
            return x + self.mlp(self.norm2(x))
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.mlp(x))


class Gpt(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.token_embedding = nn.Embedding(256, c["width"])
        self.position_embedding = nn.Embedding(c["context"], c["width"])
        self.blocks = nn.ModuleList(Block(c) for _ in range(c["depth"]))
        self.final_norm = nn.LayerNorm(c["width"])
        self.head = None if c["tied"] else nn.Linear(c["width"], 256, bias=False)
        for name, p in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(p)
            elif "norm" not in name:
                std = c["init_std"]
                if name.endswith(("out.weight", "down.weight")):
                    std /= math.sqrt(2 * c["depth"])
                nn.init.normal_(p, 0.0, std)

    def forward(self, tokens):
        x = self.token_embedding(tokens) + self.position_embedding(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        x = self.final_norm(x)
        return F.linear(x, self.token_embedding.weight if self.head is None else self.head.weight)


def loss_of(logits, targets):
    return F.cross_entropy(logits.float().reshape(-1, 256), targets.reshape(-1))
