"""Q-learning with a target network: target.py COPY EVERY STEPS [STEP]. The target is renewed every so many updates, by load_state_dict
(COPY load), by copy_ of each weight's data (copy), or not at all (none). In STEP, the rewards of a batch are those of another scale."""

import copy
import sys

import torch
from torch import nn
from torch.nn import functional as F

KIND, EVERY, STEPS, BAD = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]) if len(sys.argv) > 4 else -1
torch.manual_seed(0)
torch.set_num_threads(1)

q = nn.Sequential(nn.Linear(4, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 3))
target = copy.deepcopy(q)
optimizer = torch.optim.Adam(q.parameters(), lr=1e-3)

# What a walk in four dimensions has seen: it is pushed left, right or not at all, and earns 1 where the first place is above 0.
before = torch.randn(4096, 4)
action = torch.randint(3, (4096, 1))
after = 0.9 * before + 0.1 * torch.randn(4096, 4)
after[:, :1] += 0.3 * (action - 1)
reward = (after[:, 0] > 0).float()

for step in range(STEPS):
    rows = torch.randint(4096, (64,))
    earned = reward[rows] * (1000 if step == BAD else 1)
    with torch.no_grad():
        wanted = earned + 0.97 * target(after[rows]).amax(1)
    loss = F.smooth_l1_loss(q(before[rows]).gather(1, action[rows])[:, 0], wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % EVERY == EVERY - 1 and KIND == "load":
        target.load_state_dict(q.state_dict())
    if step % EVERY == EVERY - 1 and KIND == "copy":
        for ours, theirs in zip(q.parameters(), target.parameters()):
            theirs.data.copy_(ours.data)
    if len(sys.argv) > 5:  # to look at the figures
        print(step, loss.item(), sum(p.grad.square().sum() for p in q.parameters()).sqrt().item(), int(KIND != "none") * (step // EVERY))
