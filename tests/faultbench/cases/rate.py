"""One update with a rate far too high multiplied the weights; the values that follow leave fp16 (or fp32)."""
import sys

import torch
import torch.nn as nn

torch.manual_seed(0)
way = sys.argv[1]
net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1))
OPTIMIZERS = {
    "adamw": lambda p: torch.optim.AdamW(p, 3.0),
    "adam_late": lambda p: torch.optim.Adam(p, 1e-3),
    "rmsprop": lambda p: torch.optim.RMSprop(p, 1.0),
    "adagrad": lambda p: torch.optim.Adagrad(p, 5.0),
    "sgd": lambda p: torch.optim.SGD(p, 300.0),
    "fp32": lambda p: torch.optim.AdamW(p, 1e14),
}
opt = OPTIMIZERS[way](net.parameters())
for step in range(20):
    x = torch.randn(32, 64)
    if way == "adam_late" and step == 10:
        opt.param_groups[0]["lr"] = 4.0
    with torch.autocast("cpu", torch.float16, enabled=way != "fp32"):
        loss = (net(x).squeeze(-1) - x[:, 0]).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
