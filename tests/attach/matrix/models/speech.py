"""Speech to letters: convolutions over time, a recurrent layer, CTC."""

import torch
from torch import nn

from . import Task


class Listener(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(10, 16, 3, padding=1), nn.BatchNorm1d(16), nn.ReLU(inplace=True),
                                  nn.Conv1d(16, 16, 3, stride=2, padding=1), nn.GLU(1))
        self.cell = nn.GRU(8, 8, bidirectional=True, batch_first=True)
        self.head = nn.Linear(16, 7)

    def forward(self, sound):
        x, _ = self.cell(self.conv(sound).transpose(1, 2))
        return self.head(x).log_softmax(-1).transpose(0, 1)


def build(name):
    def batch(generator):
        return {"sound": torch.randn(3, 10, 30, generator=generator),
                "letters": torch.randint(1, 7, (3, 5), generator=generator), "lengths": torch.tensor([5, 3, 4])}

    def loss(model, b):
        scores = model(b["sound"])
        frames = torch.full((3,), scores.shape[0])
        return nn.functional.ctc_loss(scores.float(), b["letters"], frames, b["lengths"], zero_infinity=True)

    return Task(Listener(), batch, loss)
