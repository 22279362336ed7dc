"""An infinity of the forward pass is taken in by a function that saturates; backward makes 0 times infinity of it."""
import sys

import torch
import torch.nn as nn

torch.manual_seed(0)
way = sys.argv[1]
FUNCTIONS = {"atan": torch.atan, "tanh": torch.tanh, "sigmoid": torch.sigmoid, "expm": lambda v: torch.exp(-v), "erf": torch.erf,
             "reciprocal": torch.tanh, "power": torch.tanh, "logsigmoid": torch.nn.functional.logsigmoid, "ndtr": torch.special.ndtr,
             "rsqrt": lambda v: torch.tanh(v * 1), "bf16": lambda v: torch.atan(v.bfloat16()).float()}
f = FUNCTIONS[way]
net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=1e-2)
for step in range(10):
    x = torch.rand(16, 4) + 0.5
    h = net(x).abs() + 0.1
    low = torch.ones(16)
    if step == 7:
        low[5] = 0.0
    if way == "reciprocal":
        ratio = h[:, 0] * (h[:, 1] * low).reciprocal()
    elif way == "power":
        ratio = h[:, 0] * (h[:, 1] * low).pow(-1)
    else:
        ratio = h[:, 0] * torch.rsqrt(h[:, 1] * low) if way == "rsqrt" else h[:, 0] / (h[:, 1] * low)
    loss = (f(ratio) - 0.7).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
