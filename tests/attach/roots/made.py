"""A run that goes bad for a reason known by construction.

usage: made.py ARCHITECTURE CAUSE SEED STEPS OUT.json [factor=F]

CAUSE: rate (from step 60 on the learning rate is far too large), begin (it is from the first step on, without a warm-up), batch
(step 75 has a sample out of all bounds), half (fp16, and inputs that grow until a product leaves it), scale (fp16, and a loss
scale by hand that doubles until gradients leave it), state (step 70 spoils a moment of the optimizer), weights (step 70 spoils
a weight), none. `factor`: so much of the learning rate from the beginning. Writes {"losses", "bad"}: the first step whose loss is not finite, or null.
"""
import json
import sys

import torch
from torch import nn

architecture, cause, seed, steps, out = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
factor = float(sys.argv[6].removeprefix("factor=")) if len(sys.argv) > 6 else 1.0
torch.manual_seed(seed)
WIDTH = 16


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH)) for _ in range(4))
        self.head = nn.Linear(WIDTH, 1)

    def forward(self, x):
        for block in self.blocks:
            x = x + 0.3 * block(x)
        return self.head(x)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRU(4, WIDTH, batch_first=True)
        self.head = nn.Linear(WIDTH, 1)

    def forward(self, x):
        return self.head(self.cell(x.view(len(x), 4, 4))[0][:, -1])


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(4, WIDTH)
        self.layer = nn.TransformerEncoderLayer(WIDTH, 2, 32, dropout=0.1, batch_first=True, norm_first=True)
        self.head = nn.Linear(WIDTH, 1)

    def forward(self, x):
        return self.head(self.layer(self.up(x.view(len(x), 4, 4))).mean(1))


def convolutional():
    return nn.Sequential(nn.Unflatten(1, (1, 4, 4)), nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1),
                         nn.ReLU(), nn.Flatten(), nn.Linear(128, 1))


def perceptron():
    return nn.Sequential(nn.Linear(WIDTH, 32), nn.Tanh(), nn.Linear(32, 1))


model = {"residual": Residual, "recurrent": Recurrent, "decoder": Decoder, "convolutional": convolutional,
         "perceptron": perceptron}[architecture]()
adam = cause in ("state", "half", "scale", "weights") or (cause == "batch" and seed % 2)
if adam:
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3 * factor)
else:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01 * factor, momentum=0.9)
spike = {"residual": 40, "recurrent": 60, "decoder": 60, "convolutional": 40, "perceptron": 40}[architecture] * (1 + seed % 3)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: spike if cause == "begin" or (cause == "rate" and step >= 60) else 1)
losses, bad = [], None
for step in range(steps):
    x = torch.randn(32, WIDTH)
    y = (x[:, :1] - x[:, 1:2]) * 0.5
    if cause == "half":
        x = x * 1.25 ** max(step - 30, 0)
    if cause == "batch" and step == 75:
        y[seed % 32] *= 1e25
    if cause == "state" and step == 70:
        with torch.no_grad():
            moments = [state["exp_avg"] for state in optimizer.state.values()]
            if seed % 2:
                moments[0].mul_(-1e30)
            else:
                torch._foreach_mul_(moments, -1e30)
    if cause == "weights" and step == 70:
        with torch.no_grad():
            list(model.parameters())[-2 if seed % 2 else 0].view(-1)[seed % 8] = 1e30
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16, enabled=cause in ("half", "scale")):
        found = model(x)
    loss = nn.functional.mse_loss(found.float(), y)
    scale = 2.0 ** max(step - 50, 0) if cause == "scale" else 1.0
    (loss * scale).backward()
    if scale != 1:
        torch._foreach_div_([p.grad for p in model.parameters()], scale)
    optimizer.step()
    schedule.step()
    losses.append(loss.item())
    if bad is None and not torch.isfinite(loss):
        bad = step
json.dump({"losses": losses, "bad": bad}, open(out, "w"))
