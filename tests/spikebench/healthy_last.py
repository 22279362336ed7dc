"""Healthy training whose loss changes by what the program does: batches, lengths, stages, optimizers in turn."""

import torch
from healthy import net
from healthy_more import update
from torch import nn
from torch.nn import functional as F


def rare_class(steps):
    """One row in a hundred is of the other class and counts fifty times; with dropout."""
    model = nn.Sequential(net(12, 48, 48), nn.Dropout(0.5), nn.Linear(48, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(steps):
        y = (torch.rand(16, 1) < 0.01).float()
        update(optimizer, F.binary_cross_entropy_with_logits(model(torch.randn(16, 12) + y), y, pos_weight=torch.tensor(50.0)))


def curriculum(steps):
    """Rows become longer in five stages and the loss is a sum over them: it jumps, and is learned down again."""
    cell, write = nn.GRU(1, 32, batch_first=True), nn.Linear(32, 1)
    optimizer = torch.optim.Adam([*cell.parameters(), *write.parameters()], lr=2e-3)
    for step in range(steps):
        x = torch.randn(16, 4 * 2 ** min(3, 5 * step // steps), 1)
        update(optimizer, (write(cell(x)[0]) - x.cumsum(1)).square().mean(0).sum(), 1.0)


def harder_tasks(steps):
    """Four classes, then eight, sixteen, thirty-two: each stage begins at chance."""
    model, way = net(16, 64, 32), torch.randn(16, 32)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for step in range(steps):
        x = torch.randn(32, 16)
        update(optimizer, F.cross_entropy(model(x), (x @ way[:, : 4 * 2 ** (4 * step // steps)]).argmax(1)))


def accumulated(steps):
    """Eight passes of two rows for each update."""
    model, way = nn.Sequential(net(10, 48, 48), nn.LayerNorm(48), nn.Linear(48, 6)), torch.randn(10, 6)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(steps):
        optimizer.zero_grad()
        for _ in range(8):
            x = torch.randn(2, 10)
            (F.cross_entropy(model(x), (x @ way).argmax(1)) / 8).backward()
        optimizer.step()


def in_turn(steps):
    """A body and two heads with an optimizer each; the heads take turns every 50 updates."""
    body, heads = net(8, 48, 48), (nn.Linear(48, 1), nn.Linear(48, 5))
    below = torch.optim.Adam(body.parameters(), lr=1e-3)
    above = [torch.optim.SGD(heads[0].parameters(), lr=0.01), torch.optim.Adam(heads[1].parameters(), lr=1e-3)]
    way = torch.randn(8, 5)
    for step in range(steps):
        task, x = step // 50 % 2, torch.randn(16, 8)
        out = heads[task](torch.relu(body(x)))
        loss = F.cross_entropy(out, (x @ way).argmax(1)) if task else F.mse_loss(out, 3 * x[:, :1].sin())
        below.zero_grad()
        update(above[task], loss)
        below.step()


def thawed(steps):
    """A head on a frozen body, which is thawed after a third at a tenth of the rate; smoothed labels and mixed rows."""
    body, head, way = net(12, 64, 32), nn.Linear(32, 6), torch.randn(12, 6)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    for step in range(steps):
        if step == steps // 3:
            optimizer.add_param_group({"params": body.parameters(), "lr": 0.005})
        x = torch.randn(2, 16, 12)
        part = float(torch.distributions.Beta(0.4, 0.4).sample())
        y = F.one_hot((x @ way).argmax(2), 6).float()
        out = head(torch.relu(body(part * x[0] + (1 - part) * x[1])))
        update(optimizer, F.cross_entropy(out, part * y[0] + (1 - part) * y[1], label_smoothing=0.1))


def learned_by_heart(steps):
    """128 rows again and again until nothing is left to learn, without decay."""
    model, x, y = net(16, 64, 4), torch.randn(128, 16), torch.randint(4, (128,))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(steps):
        if step % 8 == 0:
            order = torch.randperm(128)
        rows = order[step % 8 * 16 :][:16]
        update(optimizer, F.cross_entropy(model(x[rows]), y[rows]))


def equation(steps):
    """A network that solves u'' = -u by its own derivatives: the loss falls by many powers of ten."""
    model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(steps):
        t = (3 * torch.rand(32, 1)).requires_grad_()
        u = model(t)
        (slope,) = torch.autograd.grad(u.sum(), t, create_graph=True)
        (bend,) = torch.autograd.grad(slope.sum(), t, create_graph=True)
        zero = torch.zeros(1, 1, requires_grad=True)
        start = model(zero)
        (first,) = torch.autograd.grad(start.sum(), zero, create_graph=True)
        update(optimizer, (bend + u).square().mean() + (start**2 + (first - 1) ** 2).sum())


def sums_over_rows(steps):
    """Sequences of 4 to 64 places, one at a time, losses summed over them; the last batch of 100 has one place."""
    model = nn.Sequential(nn.Embedding(16, 24), nn.Linear(24, 16))
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
    successor = torch.randperm(16)
    for step in range(steps):
        tokens = torch.randint(16, (1 if step % 100 == 99 else int(torch.randint(4, 65, ())),))
        wanted = torch.where(torch.rand(len(tokens)) < 0.2, torch.randint(16, tokens.shape), successor[tokens])
        update(optimizer, F.cross_entropy(model(tokens), wanted, reduction="sum"))


def triplets(steps):
    """Hardest of the batch: the loss is 0 in more and more steps."""
    model, way = net(16, 48, 8), torch.randn(6, 16)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(steps):
        y = torch.arange(6).repeat(3)
        place = model(2 * way[y] + torch.randn(18, 16))
        far = torch.cdist(place, place)
        same = y[:, None] == y
        update(optimizer, F.relu(0.3 + (far * same).max(1).values - (far + 1e6 * same).min(1).values).mean())


def by_line_search(steps):
    """LBFGS with a line search: several passes for each update."""
    model, x = net(4, 24, 1), torch.randn(64, 4)
    y = x.sin().sum(1, keepdim=True)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        return loss

    for _ in range(steps):
        optimizer.step(closure)


KINDS = {each.__name__: each for each in (rare_class, curriculum, harder_tasks, accumulated, in_turn, thawed, learned_by_heart, equation,
                                          sums_over_rows, triplets, by_line_search)}  # fmt: skip
