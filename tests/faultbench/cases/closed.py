"""A root, a norm or a power at 0 whose gradient comes back as exactly zero: a closed hinge, a mask, a clamp, a choice."""
import sys

import torch
import torch.nn as nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 4))
opt = torch.optim.SGD(net.parameters(), 1e-2)


def hinge(d, same):
    return (same * torch.relu(d - 0.1) + (1 - same) * torch.relu(1 - d)).mean()


def loss_of(way, a, b, same):
    difference = a - b
    if way == "root":
        return hinge(difference.square().sum(1).sqrt(), same)
    if way == "power":
        return hinge((difference ** 2).sum(1) ** 0.5, same)
    if way == "choice":
        squared = difference.square().sum(1)
        return torch.where(squared > 0, squared.sqrt(), torch.zeros_like(squared)).mean()
    if way == "mask":
        return (difference.abs().sum(1).sqrt() * (1 - same)).mean()
    if way == "clamp":
        return difference.square().mean(1).sqrt().clamp_min(0.05).mean()
    if way == "cube_root":
        return hinge(difference.abs().sum(1).pow(1 / 3), same)
    if way == "hypot":
        return hinge(torch.hypot(difference[:, 0], difference[:, 1]), same)
    if way == "mean_square":
        return hinge(torch.nn.functional.mse_loss(a, b, reduction="none").mean(1).sqrt(), same)
    if way == "indexed":
        return difference.square().sum(1).sqrt()[same < 1].mean()
    raise ValueError(way)


for step in range(16):
    a, b, same = torch.randn(16, 8), torch.randn(16, 8), torch.zeros(16)
    if step == 10:
        b[7] = a[7]
        same[7] = 1
    loss = loss_of(sys.argv[1], net(a), net(b), same)
    opt.zero_grad()
    loss.backward()
    opt.step()
