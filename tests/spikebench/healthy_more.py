"""More healthy training, of what people build: written after the rule of a spike, and run before it was changed."""

import math

import torch
from healthy import net
from torch import nn
from torch.nn import functional as F


def update(optimizer, loss, clip=None):
    optimizer.zero_grad()
    loss.backward()
    if clip:
        nn.utils.clip_grad_norm_([p for group in optimizer.param_groups for p in group["params"]], clip)
    optimizer.step()


def actor_critic(steps):
    """An episode a step on a cart with a pole, losses summed over it: what is learned makes episodes, and losses, longer."""
    body, actor, critic = net(4, 64), nn.Linear(64, 2), nn.Linear(64, 1)
    optimizer = torch.optim.Adam([*body.parameters(), *actor.parameters(), *critic.parameters()], lr=5e-3)
    for _ in range(steps):
        x, speed, angle, turn = (0.1 * torch.rand(4) - 0.05).tolist()
        chosen, values, length = [], [], 0
        while length < 60 and abs(angle) < 0.21 and abs(x) < 2.4:
            hidden = torch.relu(body(torch.tensor([x, speed, angle, turn])))
            odds = torch.distributions.Categorical(logits=actor(hidden))
            action = odds.sample()
            chosen.append(odds.log_prob(action))
            values.append(critic(hidden)[0])
            push = 10 if action else -10
            force = (push + 0.05 * turn * turn * math.sin(angle)) / 1.1
            bend = (9.8 * math.sin(angle) - math.cos(angle) * force) / (0.5 * (4 / 3 - 0.1 * math.cos(angle) ** 2 / 1.1))
            move = force - 0.05 * bend * math.cos(angle) / 1.1
            x, speed, angle, turn, length = x + 0.02 * speed, speed + 0.02 * move, angle + 0.02 * turn, turn + 0.02 * bend, length + 1
        returns = torch.tensor([sum(0.99**k for k in range(length - i)) for i in range(length)])
        returns = (returns - returns.mean()) / (returns.std(unbiased=False) + 1e-6)
        value = torch.stack(values)
        update(optimizer, -(torch.stack(chosen) * (returns - value.detach())).sum() + F.smooth_l1_loss(value, returns, reduction="sum"))


def clipped_policy(steps):
    """PPO: every batch of experience is used ten times, then a new one."""
    policy, critic = net(8, 64, 4), net(8, 64, 1)
    optimizer = torch.optim.Adam([*policy.parameters(), *critic.parameters()], lr=1e-3, eps=1e-5)
    way = torch.randn(8, 4)
    for step in range(steps):
        if step % 10 == 0:
            state = torch.randn(64, 8)
            with torch.no_grad():
                before = torch.distributions.Categorical(logits=policy(state))
                action = before.sample()
                old = before.log_prob(action)
                reward = (state @ way).gather(1, action[:, None])[:, 0] + torch.randn(64)
                gain = reward - critic(state)[:, 0]
                gain = (gain - gain.mean()) / (gain.std() + 1e-8)
        odds = torch.distributions.Categorical(logits=policy(state))
        ratio = (odds.log_prob(action) - old).exp()
        chosen = torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean()
        update(optimizer, 0.5 * F.mse_loss(critic(state)[:, 0], reward) - chosen - 0.01 * odds.entropy().mean(), 0.5)


def experience(steps):
    """DQN: a buffer of transitions that fills, a target copied every 250 updates, values that grow."""
    q, target = net(4, 64, 3), net(4, 64, 3)
    target.load_state_dict(q.state_dict())
    optimizer = torch.optim.RMSprop(q.parameters(), lr=5e-4)
    place, buffer = torch.randn(4), []
    for step in range(steps):
        action = int(torch.randint(3, ())) if torch.rand(()) < max(0.05, 1 - step / 1000) else int(q(place).argmax())
        after = 0.9 * place + 0.3 * torch.randn(4) + (action - 1) * 0.2
        buffer.append((place, action, float(after[0] > 0), after))
        place = after if torch.rand(()) > 0.02 else torch.randn(4)
        buffer = buffer[-2000:]
        drawn = [buffer[i] for i in torch.randint(len(buffer), (16,))]
        state, later = torch.stack([row[0] for row in drawn]), torch.stack([row[3] for row in drawn])
        actions, reward = torch.tensor([[row[1]] for row in drawn]), torch.tensor([row[2] for row in drawn])
        with torch.no_grad():
            wanted = reward + 0.98 * target(later).max(1).values
        update(optimizer, F.mse_loss(q(state).gather(1, actions)[:, 0], wanted))
        if step % 250 == 249:
            target.load_state_dict(q.state_dict())


def critic_of_distance(steps):
    """A Wasserstein GAN with a penalty on gradients: five updates of the critic for one of the generator."""
    made, critic = net(4, 32, 2), net(2, 32, 1)
    one = torch.optim.Adam(made.parameters(), lr=5e-4, betas=(0.0, 0.9))
    other = torch.optim.Adam(critic.parameters(), lr=5e-4, betas=(0.0, 0.9))
    for step in range(steps):
        fake = made(torch.randn(32, 4))
        if step % 6 == 5:
            update(one, -critic(fake).mean())
            continue
        real = torch.randint(-1, 2, (32, 2)) + 0.05 * torch.randn(32, 2)
        part = torch.rand(32, 1)
        between = (part * real + (1 - part) * fake.detach()).requires_grad_()
        (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
        update(other, critic(fake.detach()).mean() - critic(real).mean() + 10 * (slope.norm(dim=1) - 1).square().mean())


def recurrent_text(steps):
    """An LSTM on a made text, plain SGD with a rate of 5 and clipping, the state carried on, the rate a quarter four times."""
    read, cell, write = nn.Embedding(40, 32), nn.LSTM(32, 48), nn.Linear(48, 40)
    weights = [*read.parameters(), *cell.parameters(), *write.parameters()]
    optimizer = torch.optim.SGD(weights, lr=5.0)
    odds = torch.softmax(3 * torch.randn(40, 40), 1)
    token, state = torch.randint(40, (8,)), None
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = 5.0 / 4 ** (4 * step // steps)
        tokens = [token]
        for _ in range(12):
            tokens.append(torch.multinomial(odds[tokens[-1]], 1)[:, 0])
        token = tokens[-1]
        out, state = cell(read(torch.stack(tokens[:-1])), state)
        state = tuple(s.detach() for s in state)
        update(optimizer, F.cross_entropy(write(out).flatten(0, 1), torch.stack(tokens[1:]).flatten()), 0.25)


def transformer(steps):
    """A causal transformer that learns to copy, AdamW with warm-up and half a cosine: the loss falls at once when it has understood."""
    read, write, place = nn.Embedding(20, 32), nn.Linear(32, 20), nn.Parameter(0.02 * torch.randn(16, 32))
    body = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True, norm_first=True), 2)
    optimizer = torch.optim.AdamW([*read.parameters(), *write.parameters(), *body.parameters(), place], lr=2e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1, s / 200) * (0.5 + 0.5 * math.cos(math.pi * min(1, s / steps))))
    mask = nn.Transformer.generate_square_subsequent_mask(16)
    for _ in range(steps):
        half = torch.randint(20, (16, 8))
        tokens = torch.cat([half, half], 1)
        out = write(body(read(tokens) + place, mask=mask))
        update(optimizer, F.cross_entropy(out[:, 7:-1].flatten(0, 1), tokens[:, 8:].flatten()), 1.0)
        schedule.step()


def contrastive(steps):
    """Two views of each row, told from the others of the batch, with a temperature of 0.07; every 64th batch is a third as large."""
    model = net(24, 64, 16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    for step in range(steps):
        rows = torch.randn(20 if step % 64 == 63 else 64, 24)
        one, other = (F.normalize(model(rows + 0.4 * torch.randn_like(rows)), dim=1) for _ in range(2))
        update(optimizer, F.cross_entropy(one @ other.T / 0.07, torch.arange(len(rows))))


def diffusion(steps):
    """The noise of a picture is foretold, a random strength a sample; an average of the weights is kept."""
    model, average = net(2 + 8, 64, 64, 2), net(2 + 8, 64, 64, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    pace = 2.0 ** torch.arange(4)
    for _ in range(steps):
        angle, noise, time = torch.rand(16) * 4 * math.pi, torch.randn(16, 2), torch.rand(16, 1)
        x = torch.stack([angle * angle.cos(), angle * angle.sin()], 1) / 8
        mixed = (time * math.pi / 2).cos() * x + (time * math.pi / 2).sin() * noise
        update(optimizer, F.mse_loss(model(torch.cat([mixed, (time * pace).sin(), (time * pace).cos()], 1)), noise))
        with torch.no_grad():
            for mean, now in zip(average.parameters(), model.parameters()):
                mean.lerp_(now, 0.01)


KINDS = {each.__name__: each for each in (actor_critic, clipped_policy, experience, critic_of_distance, recurrent_text, transformer, contrastive,
                                          diffusion)}  # fmt: skip
