"""One block used three times, an embedding that is also the head, a parameter that is a view of another's memory."""

import torch
from torch import nn

from . import Task


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(30, 16)
        self.block = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
        self.head = nn.Linear(16, 30, bias=False)
        self.head.weight = self.embedding.weight
        both = torch.randn(2, 16) * 0.1
        self.shift, self.scale = nn.Parameter(both[0]), nn.Parameter(both[1])

    def forward(self, tokens):
        x = self.embedding(tokens) * (1 + self.scale) + self.shift
        for _ in range(3):
            x = self.block(x)
        return self.head(x)


def build(name):
    def batch(generator):
        return {"tokens": torch.randint(0, 30, (2, 9), generator=generator)}

    def loss(model, b):
        tokens = b["tokens"]
        return nn.functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())

    return Task(Shared(), batch, loss)
