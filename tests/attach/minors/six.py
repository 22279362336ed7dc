"""Six failures in different parts of PyTorch, small, for files that every minor version records (tests/attach/minors).

usage: six.py KIND
"""

import sys

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)


def convolution_in_fp16():
    """A batch norm's output times a weight that is too large for fp16."""
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.GELU(), nn.Flatten(), nn.Linear(4 * 36, 2))
    x, y = torch.randn(4, 1, 8, 8), torch.randint(2, (4,))
    last = 1e6

    def loss(step):
        nonlocal last
        if step == 3:
            last = 3e7
        with torch.autocast("cpu", torch.float16):
            h = net[:4](x)
            return nn.functional.cross_entropy(net[4](h * (last / 1e6) * 1e4).float() / last, y)

    return net, loss


def attention_without_a_key():
    """A softmax written by hand; the padding of one sample covers all its keys."""
    net, head = nn.Linear(16, 48), nn.Linear(16, 1)
    x = torch.randn(3, 5, 16)

    def loss(step):
        padding = torch.zeros(3, 5, dtype=torch.bool)
        padding[1, 0 if step == 3 else 3 :] = True
        q, k, v = net(x).chunk(3, -1)
        scores = (q @ k.transpose(1, 2) / 4).masked_fill(padding[:, None], float("-inf"))
        return head(scores.softmax(-1) @ v).square().mean()

    return nn.ModuleList([net, head]), loss


def recurrent_net_and_a_bad_sample():
    net, head = nn.LSTM(4, 8, batch_first=True), nn.Linear(8, 1)
    data = torch.utils.data.TensorDataset(torch.randn(40, 6, 4))
    data.tensors[0][13, 2, 1] = float("nan")
    batches = iter(torch.utils.data.DataLoader(data, batch_size=4))

    def loss(step):
        (x,) = next(batches)
        return (head(net(x)[0][:, -1]) - x[:, 0].sum(1, keepdim=True)).square().mean()

    return nn.ModuleList([net, head]), loss


def logarithm_of_an_empty_count():
    table = nn.Embedding(6, 3)
    words = torch.tensor([0, 1, 2, 3])

    def loss(step):
        seen = torch.tensor([2.0, 1.0, 3.0, 0.0 if step == 3 else 1.0])
        return (table(words).mean(1) * torch.log(seen)).sum()

    return table, loss


def distance_of_equal_points():
    net = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.Tanh(), nn.Linear(8, 4))
    a = torch.randn(6, 4)

    def loss(step):
        b = a.flip(0) if step != 3 else a
        return (net(a) - net(b)).square().sum(1).sqrt().mean()

    return net, loss


def scale_of_a_constant_column():
    net = nn.Sequential(nn.Linear(3, 6), nn.SiLU(), nn.Linear(6, 1))
    x = torch.randn(8, 3)

    def loss(step):
        batch = x.clone()
        if step == 3:
            batch[:, 1] = 2.0
        return net((batch - batch.mean(0)) / (batch.amax(0) - batch.amin(0))).square().mean()

    return net, loss


KINDS = [each for each in list(globals().values()) if getattr(each, "__module__", "") == __name__ and callable(each)]

if __name__ == "__main__":
    model, loss_of = {each.__name__: each for each in KINDS}[sys.argv[1]]()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(5):
        optimizer.zero_grad()
        loss_of(step).backward()
        optimizer.step()
