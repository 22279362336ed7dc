"""Reinforcement learning: rollouts without gradients between the updates. In the third a sensor gives NaN, or the program errs."""
import sys

import torch
from torch import nn

torch.manual_seed(0)
policy, optimizer = nn.Linear(4, 2), None


def collect(rollout):
    state = torch.randn(4)
    if rollout == 2 and sys.argv[1] == "nan":
        state[2] = float("nan")
    observed = {"time": 1.0, "position": state, "mask": torch.tensor([0.0, float("-inf")])}
    with torch.no_grad():
        loc, scale = policy(observed["position"])
        action = torch.distributions.Normal(loc.reshape(1), scale.exp().reshape(1)).sample()
    if rollout == 2:
        raise ValueError("no such action")
    return state, action


optimizer = torch.optim.SGD(policy.parameters(), lr=0.01)
for number in range(5):
    rollout = [collect(number) for _ in range(3)]
    for state, action in rollout:
        optimizer.zero_grad()
        (policy(state)[0] - action).square().mean().backward()
        optimizer.step()
