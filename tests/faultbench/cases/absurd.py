"""One value of the data is a fill value or in a wrong unit: finite, and no data. `absurd.py WAY VALUE`."""
import sys

import torch
import torch.nn as nn

torch.manual_seed(0)
way, value = sys.argv[1], float(sys.argv[2])
net = nn.Sequential(nn.Linear(6, 16), nn.Tanh() if way == "tanh" else nn.ReLU(), nn.Linear(16, 6))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
data, goal = torch.randn(640, 6), torch.randn(640, 6)
(goal if way == "goal" else data)[333, 2] = value
half = way == "half"
for step in range(16):
    rows = slice(step * 32, step * 32 + 32)
    if way == "gathered":
        x = data[torch.arange(640)[rows]]
    elif way == "stacked":
        x = torch.stack([data[i].clone() for i in range(rows.start, rows.stop)])
    else:
        x = data[rows]
    y = goal[rows] if way == "goal" else x
    if way == "window":  # of seven frames the last is the target, and a block of it was never filled
        frames = torch.randn(3, 7, 16, 6)
        if step == 10:
            frames[1, 6, 4:12, :3] = value
        x, y = frames[:, :6].mean(1), frames[:, 6]
    with torch.autocast("cpu", torch.float16, enabled=half):
        loss = (net(x) - y).pow(2).mean() if way != "cubed" else (net(x) - y).abs().pow(3).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
