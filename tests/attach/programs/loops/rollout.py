"""REINFORCE: an episode of 150 forward passes, then one backward; all returns of episode 3 are equal, and so without deviation."""
import torch
from torch import nn

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.Adam(policy.parameters(), 1e-2)
for episode in range(5):
    state, logs, rewards = torch.randn(4), [], []
    for _ in range(150):
        move = torch.distributions.Categorical(logits=policy(state), validate_args=False)
        action = move.sample() if episode < 4 else torch.tensor(0)
        logs.append(move.log_prob(action))
        state = 0.9 * state + 0.1 * torch.randn(4) + action - 0.5
        rewards.append(0.0 if episode == 3 else -state.abs().sum().item())
    returns = torch.tensor(rewards).flip(0).cumsum(0).flip(0)
    returns = (returns - returns.mean()) / returns.std()
    loss = -(torch.stack(logs) * returns).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
