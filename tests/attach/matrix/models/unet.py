"""A U-Net that takes noise off a picture: GroupNorm, skips, both ways to make a picture larger."""

import torch
from torch import nn

from . import Task


class Block(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.norm = nn.GroupNorm(4, inputs)
        self.conv = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.time = nn.Linear(8, outputs)

    def forward(self, x, time):
        return self.conv(nn.functional.silu(self.norm(x))) + self.time(time)[:, :, None, None]


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(1, 8, 3, padding=1)
        self.down = nn.ModuleList([Block(8, 16), Block(16, 16)])
        self.middle = Block(16, 16)
        self.grow = nn.ConvTranspose2d(16, 16, 2, stride=2)
        self.up = nn.ModuleList([Block(32, 16), Block(24, 8)])
        self.last = nn.Conv2d(8, 1, 1)

    def forward(self, x, time):
        frequencies = torch.exp(torch.arange(4) * -1.5)
        angles = time[:, None] * frequencies
        time = torch.cat([angles.sin(), angles.cos()], 1)
        a = self.first(x)
        b = nn.functional.avg_pool2d(self.down[0](a, time), 2)
        c = nn.functional.max_pool2d(self.down[1](b, time), 2)
        c = self.grow(self.middle(c, time))
        b = self.up[0](torch.cat([b, c], 1), time)
        a = self.up[1](torch.cat([a, nn.functional.interpolate(b, scale_factor=2, mode="bilinear")], 1), time)
        return self.last(a)


def build(name):
    def batch(generator):
        return {"x": torch.randn(2, 1, 16, 16, generator=generator), "time": torch.rand(2, generator=generator),
                "noise": torch.randn(2, 1, 16, 16, generator=generator)}

    return Task(UNet(), batch, lambda m, b: nn.functional.huber_loss(m(b["x"] + b["noise"], b["time"]), b["noise"]))
