"""torchvision's convolutional networks, a few blocks of each."""

import torch
from torch import nn
from torchvision.models import convnext, resnet

from . import Task


def _model(name):
    if name == "resnet":
        return resnet.ResNet(resnet.BasicBlock, [1, 1, 1, 1], num_classes=5)
    blocks = [convnext.CNBlockConfig(16, 32, 2), convnext.CNBlockConfig(32, None, 2)]
    return convnext.ConvNeXt(blocks, stochastic_depth_prob=0.2, num_classes=5)


def build(name):
    def batch(generator):
        return {"x": torch.randn(3, 3, 24, 24, generator=generator), "labels": torch.randint(0, 5, (3,), generator=generator)}

    return Task(_model(name), batch, lambda m, b: nn.functional.cross_entropy(m(b["x"]), b["labels"], label_smoothing=0.1))
