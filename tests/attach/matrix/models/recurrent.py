"""Cells that run along a sequence: LSTM over plain batches, GRU over packed sequences of different lengths."""

import torch
from torch import nn

from . import Task


class Tagger(nn.Module):
    def __init__(self, name):
        super().__init__()
        cell = nn.LSTM if name == "lstm" else nn.GRU
        self.embedding = nn.Embedding(40, 16, padding_idx=0)
        self.cell = cell(16, 12, num_layers=2, batch_first=True, dropout=0.2, bidirectional=True)
        self.head = nn.Linear(24, 6)
        self.packed = name == "gru"

    def forward(self, tokens, lengths):
        x = self.embedding(tokens)
        if self.packed:
            x = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        x, _ = self.cell(x)
        if self.packed:
            x, _ = nn.utils.rnn.pad_packed_sequence(x, batch_first=True)
        return self.head(x)


def build(name):
    def batch(generator):
        lengths = torch.tensor([9, 5, 7])
        tokens = torch.randint(1, 40, (3, 9), generator=generator)
        tokens = tokens.masked_fill(torch.arange(9) >= lengths[:, None], 0)
        return {"tokens": tokens, "lengths": lengths, "labels": torch.randint(0, 6, (3, 9), generator=generator)}

    def loss(model, b):
        labels = b["labels"].masked_fill(b["tokens"] == 0, -100)
        return nn.functional.cross_entropy(model(b["tokens"], b["lengths"]).flatten(0, 1), labels.flatten())

    return Task(Tagger(name), batch, loss)
