"""Where features of PyTorch register themselves: each is a small training step."""

import torch

FEATURES = {}   # name -> (make, group)


def feature(name, group=None):
    """The function makes a feature: (parameters, step) or (parameters, step, optimizer); `step(i)` gives the loss."""
    def add(make):
        FEATURES[name] = (make, group or make.__module__)
        return make
    return add


def param(*shape, dtype=torch.float32, scale=0.3):
    return (torch.randn(*shape) * scale).to(dtype).requires_grad_(True)
