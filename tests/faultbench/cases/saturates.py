"""An overflow of fp16 (or fp32) that a saturating function takes in: forward stays finite, backward makes NaN of it. Nothing chooses anywhere."""
import sys

import torch
import torch.nn as nn

torch.manual_seed(0)
HALF = torch.float16
WAYS = {
    "gelu": lambda v: 0.5 * v * (1 + torch.tanh(0.7978845608 * (v + 0.044715 * torch.pow(v, 3.0)))),
    "cube": lambda v: torch.tanh(v * v * v),
    "square": lambda v: torch.sigmoid(v.square()),
    "softcap": lambda v: 30 * torch.tanh((v * v).sum(1, keepdim=True) / 30) + v,
    "erf": lambda v: torch.erf(v ** 3),
    "atan": lambda v: torch.atan(v.pow(4)),
    "addcmul": lambda v: torch.tanh(torch.addcmul(v, v * v, v)),
    "product": lambda v: torch.tanh(v.unsqueeze(-1).expand(-1, -1, 3).prod(-1)),
    "logsigmoid": lambda v: nn.functional.logsigmoid(v.pow(4)),
    "single": lambda v: torch.tanh(v.float() ** 13),
}
way = WAYS[sys.argv[1]]
first, last = nn.Linear(16, 64), nn.Linear(64, 1)
opt = torch.optim.SGD([*first.parameters(), *last.parameters()], lr=1e-6)
for step in range(40):
    x = torch.randn(32, 16) * 1.3 ** step
    with torch.autocast("cpu", HALF):
        loss = last(way(first(x))).float().abs().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
