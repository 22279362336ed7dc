"""A graph network: messages along edges, gathered and scattered by index in every way PyTorch has."""

import torch
from torch import nn

from . import Task

NODES, EDGES = 12, 40


class GraphLayer(nn.Module):
    def __init__(self, inputs, outputs, how):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.how = how

    def forward(self, x, source, target):
        x = self.linear(x)
        message = x[source]
        empty = x.new_zeros(x.shape)
        if self.how == "mean":
            degree = x.new_zeros(x.shape[0]).index_add(0, target, x.new_ones(EDGES))
            return empty.index_add(0, target, message) / degree.clamp(min=1)[:, None]
        where = target[:, None].expand_as(message)
        if self.how == "sum":
            return empty.scatter_add(0, where, message)
        return empty.scatter_reduce(0, where, message, "amax", include_self=False)


class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([GraphLayer(8, 16, "mean"), GraphLayer(16, 16, "max"), GraphLayer(16, 4, "sum")])

    def forward(self, x, edges):
        for i, layer in enumerate(self.layers):
            x = layer(x, edges[0], edges[1])
            if i < 2:
                x = nn.functional.dropout(nn.functional.elu(x), 0.2, self.training)
        return x


def build(name):
    def batch(generator):
        return {"x": torch.randn(NODES, 8, generator=generator),
                "edges": torch.randint(0, NODES, (2, EDGES), generator=generator),
                "labels": torch.randint(0, 4, (NODES,), generator=generator)}

    return Task(GCN(), batch, lambda m, b: nn.functional.cross_entropy(m(b["x"], b["edges"]), b["labels"]))
