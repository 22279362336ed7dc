"""Healthy training that is noisy by nature. Nothing in it is a spike that a person would want to see."""

import math

import torch
from torch import nn
from torch.nn import functional as F


def net(*sizes):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def policy_gradient(steps):
    """REINFORCE on a walk of 12 places, an episode a step."""
    policy = net(12, 32, 2)
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-3)
    for _ in range(steps):
        place, chosen, rewards = 5, [], []
        for _ in range(24):
            odds = torch.distributions.Categorical(logits=policy(F.one_hot(torch.tensor(place), 12).float()))
            action = odds.sample()
            chosen.append(odds.log_prob(action))
            place = min(11, max(0, place + 2 * int(action) - 1))
            rewards.append(1.0 if place == 11 else -1.0 if place == 0 else 0.0)
            if rewards[-1]:
                break
        returns = torch.tensor([sum(r * 0.97**k for k, r in enumerate(rewards[i:])) for i in range(len(rewards))])
        loss = -(torch.stack(chosen) * returns).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def q_learning(steps):
    """Temporal differences with a copied target, transitions of heavy-tailed rewards."""
    q, target = net(6, 48, 3), net(6, 48, 3)
    target.load_state_dict(q.state_dict())
    optimizer = torch.optim.Adam(q.parameters(), lr=1e-3)
    for step in range(steps):
        state, after = torch.randn(32, 6), torch.randn(32, 6)
        action, reward = torch.randint(3, (32, 1)), state[:, :1].exp() * (torch.rand(32, 1) < 0.2)
        with torch.no_grad():
            wanted = reward + 0.95 * target(after).max(1, keepdim=True).values
        loss = F.smooth_l1_loss(q(state).gather(1, action), wanted)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(q.parameters(), 10)
        optimizer.step()
        if step % 200 == 199:
            target.load_state_dict(q.state_dict())


def adversaries(steps):
    """A generator and its critic, an update each in turn."""
    made, critic = net(8, 48, 2), net(2, 48, 1)
    one = torch.optim.Adam(made.parameters(), lr=1e-3, betas=(0.5, 0.9))
    other = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.9))
    for _ in range(steps // 2):
        angle = torch.rand(64) * 2 * math.pi
        real = torch.stack([angle.cos(), angle.sin()], 1) + 0.05 * torch.randn(64, 2)
        fake = made(torch.randn(64, 8))
        loss = F.softplus(-critic(real)).mean() + F.softplus(critic(fake.detach())).mean()
        other.zero_grad()
        loss.backward()
        other.step()
        loss = F.softplus(-critic(made(torch.randn(64, 8)))).mean()
        one.zero_grad()
        loss.backward()
        one.step()


def batch_of_one(steps):
    """A row at a time, one in eight with a wrong label."""
    model, way = net(16, 32, 5), torch.randn(16, 5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for _ in range(steps):
        x = torch.randn(1, 16)
        y = (x @ way).argmax(-1) if torch.rand(()) > 0.125 else torch.randint(5, (1,))
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def warm_up_and_cosine(steps):
    """A language of 64 words; warm-up, then half a cosine."""
    model = nn.Sequential(nn.Embedding(64, 32), nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 64))
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda s: min(1, s / 300) * (0.55 + 0.45 * math.cos(math.pi * min(1, s / steps)))
    )
    successor = torch.randperm(64)
    for _ in range(steps):
        tokens = torch.randint(64, (8, 16))
        wanted = torch.where(torch.rand(8, 16) < 0.3, torch.randint(64, (8, 16)), successor[tokens])
        loss = F.cross_entropy(model(tokens).flatten(0, 1), wanted.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()


def restarts(steps):
    """A convolution on pictures of stripes, with warm restarts."""
    model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 400)
    line = torch.arange(10.0)
    for _ in range(steps):
        y = torch.randint(4, (16,))
        x = (line[None, None] * (y[:, None, None] + 1) * 0.7 + torch.rand(16, 1, 1) * 6).sin() + 0.8 * torch.randn(16, 10, 10)
        loss = F.cross_entropy(model(x[:, None]), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()


def many_tasks(steps):
    """Three losses of very different sizes, one drawn for each step."""
    body, heads = net(12, 48, 48), nn.ModuleList([nn.Linear(48, 1), nn.Linear(48, 6), nn.Linear(48, 12)])
    optimizer = torch.optim.Adam([*body.parameters(), *heads.parameters()], lr=1e-3)
    way = torch.randn(12, 6)
    for _ in range(steps):
        x, task = torch.randn(16, 12), int(torch.randint(3, ()))
        out = heads[task](torch.relu(body(x)))
        wanted = (20 * x[:, :1].sin(), (x @ way).argmax(-1), x.roll(1, 1))[task]
        loss = (F.mse_loss, F.cross_entropy, F.mse_loss)[task](out, wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def tiny_batches(steps):
    """Two rows a step, targets with a heavy tail."""
    model = net(8, 32, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(steps):
        x = torch.randn(2, 8)
        y = x.sum(1, keepdim=True) + torch.distributions.StudentT(4.0).sample((2, 1))
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def autoencoder(steps):
    """A variational autoencoder whose second term grows in, with dropout."""
    inside, outside, dropout = net(20, 48, 16), net(8, 48, 20), nn.Dropout(0.2)
    optimizer = torch.optim.AdamW([*inside.parameters(), *outside.parameters()], lr=2e-3)
    way = torch.randn(5, 20)
    for step in range(steps):
        x = torch.randn(32, 5) @ way + 0.1 * torch.randn(32, 20)
        mean, log = inside(dropout(x)).chunk(2, 1)
        again = outside(mean + torch.randn_like(mean) * (0.5 * log).exp())
        hidden = -0.5 * (1 + log - mean.square() - log.exp()).sum(1).mean()
        loss = F.mse_loss(again, x) * 20 + min(1.0, step / 1000) * hidden
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_([*inside.parameters(), *outside.parameters()], 5)
        optimizer.step()


def two_trainings(steps):
    """One model after the other in one process, then the second with another optimizer on another loss."""
    for size, scale in ((16, 1.0), (24, 100.0)):
        model = net(8, size, 1)
        for wanted in (lambda x: scale * x.sum(1, keepdim=True), lambda x: 50 * scale * x[:, :1].sin()):
            optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
            for _ in range(steps // 4):
                x = torch.randn(16, 8)
                loss = F.mse_loss(model(x), wanted(x))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()


KINDS = {each.__name__: each for each in (policy_gradient, q_learning, adversaries, batch_of_one, warm_up_and_cosine, restarts, many_tasks,
                                          tiny_batches, autoencoder, two_trainings)}  # fmt: skip
