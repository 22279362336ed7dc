"""Seven more healthy trainings, each a harder case of a kind that healthy.py, healthy_more.py or healthy_last.py has. Written after the rule of a
spike, and run before it was changed."""

import copy
import math

import torch
from healthy import net
from healthy_more import update
from torch import nn
from torch.nn import functional as F


def hinge_adversaries(steps):
    """A GAN of four islands with spectral norms, three updates of the critic for one of the generator; one of the islands is rare."""
    made = net(4, 64, 64, 2)
    critic = nn.Sequential(*(nn.utils.parametrizations.spectral_norm(it) if isinstance(it, nn.Linear) else it for it in net(2, 64, 64, 1)))
    one, other = (torch.optim.Adam(it.parameters(), lr=2e-3, betas=(0.0, 0.9)) for it in (made, critic))
    places = torch.tensor([[2.0, 0.0], [-2.0, 0.0], [0.0, 2.0], [0.0, -6.0]])
    for step in range(steps):
        if step % 4 < 3:
            island = torch.multinomial(torch.tensor([0.4, 0.3, 0.28, 0.02]), 32, replacement=True)
            real, fake = places[island] + 0.1 * torch.randn(32, 2), made(torch.randn(32, 4)).detach()
            update(other, F.relu(1 - critic(real)).mean() + F.relu(1 + critic(fake)).mean())
        else:
            update(one, -critic(made(torch.randn(32, 4))).mean())


def policy_of_walk(steps):
    """PPO with advantages over time: episodes of a walk that end early, or late with a large reward; four minibatches, three passes each."""
    body, actor, critic = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh()), nn.Linear(64, 2), nn.Linear(64, 1)
    optimizer = torch.optim.Adam([*body.parameters(), *actor.parameters(), *critic.parameters()], lr=7e-4, eps=1e-5)
    place, age = torch.zeros(16), torch.zeros(16)
    for step in range(steps):
        if step % 12 == 0:
            seen, actions, odds, values, rewards, goes_on = [], [], [], [], [], []
            with torch.no_grad():
                for _ in range(16):
                    state = torch.stack([place / 8, age / 40], 1)
                    hidden = body(state)
                    drawn = torch.distributions.Categorical(logits=actor(hidden))
                    action = drawn.sample()
                    place, age = place + 2 * action - 1 + 0.5 * torch.randn(16), age + 1
                    ends = (place.abs() > 8) | (age >= 40)
                    for kept, it in zip((seen, actions, odds, values, rewards, goes_on),
                                        (state, action, drawn.log_prob(action), critic(hidden)[:, 0], torch.where(place > 8, 50.0, -0.1), 1 - ends.float())):  # fmt: skip
                        kept.append(it)
                    place, age = place * ~ends, age * ~ends
                gain, last, gains = torch.zeros(16), critic(body(torch.stack([place / 8, age / 40], 1)))[:, 0], []
                for reward, value, lives in zip(rewards[::-1], values[::-1], goes_on[::-1]):
                    gain = reward + 0.99 * last * lives - value + 0.99 * 0.95 * lives * gain
                    gains, last = [gain, *gains], value
            seen, actions, odds, values, gains = (torch.cat(it) for it in (seen, actions, odds, values, gains))
            order = torch.cat([torch.randperm(256) for _ in range(3)])
        rows = order[step % 12 * 64 :][:64]
        hidden, gain = body(seen[rows]), (gains[rows] - gains[rows].mean()) / (gains[rows].std() + 1e-8)
        drawn = torch.distributions.Categorical(logits=actor(hidden))
        ratio = (drawn.log_prob(actions[rows]) - odds[rows]).exp()
        wanted = gains[rows] + values[rows]
        loss = -torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean() + 0.5 * F.mse_loss(critic(hidden)[:, 0], wanted) - 0.01 * drawn.entropy().mean()
        update(optimizer, loss, 0.5)


def four_pairs(steps):
    """Contrastive, four pairs a step at a learned temperature; one pair in ten belongs to none."""
    left, right, heat = net(12, 64, 16), net(20, 64, 16), nn.Parameter(torch.tensor(math.log(1 / 0.07)))
    optimizer = torch.optim.AdamW([*left.parameters(), *right.parameters(), heat], lr=1e-3)
    one, other = torch.randn(4, 12), torch.randn(4, 20)
    for _ in range(steps):
        hidden = torch.randn(4, 4)
        wrong = torch.where(torch.rand(4, 1) < 0.1, torch.randn(4, 4), hidden)
        a, b = F.normalize(left(hidden @ one + 0.1 * torch.randn(4, 12)), dim=1), F.normalize(right(wrong @ other + 0.1 * torch.randn(4, 20)), dim=1)
        scores, same = a @ b.T * heat.exp(), torch.arange(4)
        update(optimizer, (F.cross_entropy(scores, same) + F.cross_entropy(scores.T, same)) / 2)


def longer_and_longer(steps):
    """A recurrent net that adds up marked numbers; sequences become longer every 250 steps, from 4 to 64, and the loss jumps then."""
    inner, head = nn.GRU(2, 32, batch_first=True), nn.Linear(32, 1)
    optimizer = torch.optim.Adam([*inner.parameters(), *head.parameters()], lr=3e-3)
    for step in range(steps):
        length = 4 + 8 * min(step // 250, 7) + int(torch.randint(4, ()))
        numbers, marked = torch.rand(16, length), (torch.rand(16, length) < 0.3).float()
        out = head(inner(torch.stack([numbers, marked], 2))[0][:, -1])
        update(optimizer, F.mse_loss(out[:, 0], (numbers * marked).sum(1)), 1.0)


def cycles(steps):
    """A rate that goes up and down between 1e-3 and 0.3 every 100 steps, and restarts at double the length, with momentum against it."""
    model, way = net(16, 64, 64, 8), torch.randn(16, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    cycle = torch.optim.lr_scheduler.CyclicLR(optimizer, 1e-3, 0.3, step_size_up=50, mode="triangular")
    warm = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 150, T_mult=2)
    for step in range(steps):
        x = torch.randn(32, 16)
        y = torch.where(torch.rand(32) < 0.05, torch.randint(8, (32,)), (x @ way).argmax(1))
        update(optimizer, F.cross_entropy(model(x), y))
        (cycle if step < steps // 2 else warm).step()


def long_tail(steps):
    """Fifty classes, the rarest in one of a thousand rows and with a weight of its own in the loss; eight rows a step."""
    odds = 1 / torch.arange(1, 51.0) ** 1.5
    odds, centres = odds / odds.sum(), 2 * torch.randn(50, 12)
    model, weights = net(12, 64, 50), (1 / odds).sqrt()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for _ in range(steps):
        y = torch.multinomial(odds, 8, replacement=True)
        update(optimizer, F.cross_entropy(model(centres[y] + torch.randn(8, 12)), y, weight=weights / weights.mean()))


def pole(steps):
    """DQN on a cart with a pole: a replay buffer, a smooth loss, a target that is renewed every 500 updates, values that grow."""
    q = net(4, 64, 64, 2)
    target = copy.deepcopy(q)
    optimizer = torch.optim.Adam(q.parameters(), lr=5e-4)
    buffer, state = [], 0.1 * torch.rand(4) - 0.05
    for step in range(steps + 256):
        action = int(torch.randint(2, ())) if torch.rand(()) < max(0.05, 1 - step / 1000) else int(q(state).argmax())
        x, speed, angle, turn = state.tolist()
        force = (10 if action else -10) + 0.05 * turn * turn * math.sin(angle)
        bend = (9.8 * math.sin(angle) - math.cos(angle) * force / 1.1) / (0.5 * (4 / 3 - 0.1 * math.cos(angle) ** 2 / 1.1))
        move = force / 1.1 - 0.05 * bend * math.cos(angle) / 1.1
        after = torch.tensor([x + 0.02 * speed, speed + 0.02 * move, angle + 0.02 * turn, turn + 0.02 * bend])
        ends = abs(float(after[2])) > 0.21 or abs(float(after[0])) > 2.4
        buffer = [*buffer[-1999:], (state, action, 0.0 if ends else 1.0, after)]
        state = 0.1 * torch.rand(4) - 0.05 if ends else after
        if step < 256:
            continue
        drawn = [buffer[i] for i in torch.randint(len(buffer), (32,))]
        before, later = torch.stack([row[0] for row in drawn]), torch.stack([row[3] for row in drawn])
        actions, lives = torch.tensor([[row[1]] for row in drawn]), torch.tensor([row[2] for row in drawn])
        with torch.no_grad():
            wanted = 1 + 0.99 * lives * target(later).amax(1)
        update(optimizer, F.smooth_l1_loss(q(before).gather(1, actions)[:, 0], wanted))
        if step % 500 == 499:
            target.load_state_dict(q.state_dict())


KINDS = {each.__name__: each for each in (hinge_adversaries, policy_of_walk, four_pairs, longer_and_longer, cycles, long_tail, pole)}
