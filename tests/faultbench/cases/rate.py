"""One update with a rate far too high multiplied the weights; the values that follow leave fp16 (or fp32). `batch`: the rate is usual, and
a batch made the gradient large."""
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
    "second_stage": lambda p: torch.optim.AdamW(p, 1e-3),
    "batch": lambda p: torch.optim.SGD(p, 0.05),
}
opt = OPTIMIZERS[way](net.parameters())
for step in range(20):
    x = torch.randn(32, 64)
    if way == "adam_late" and step == 10:
        opt.param_groups[0]["lr"] = 4.0
    if way == "second_stage" and step == 10:
        opt = torch.optim.SGD(net.parameters(), 1e4)
    if way == "batch" and step == 10:
        x *= 100
    with torch.autocast("cpu", torch.float16, enabled=way not in ("fp32", "second_stage")):
        loss = (net(x).squeeze(-1) - x[:, 0]).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
