"""An embedding and a few layers, too many weights to be looked at after every update; step BAD goes wrong in a certain way.

usage: update.py WHAT BAD STEPS [WEIGHTS_FILE]

WHAT is one of
  eps          AdamW in fp16 gets eps=1e-8, which is 0 there: rows without a gradient become 0/0, and are read one step later
  eps-foreach  the same by the foreach kernels
  eps-second   the same by a second optimizer, whose first update it is
  lr           the learning rate is infinite
  clip         an optimizer that clips inside its step divides a norm of 0 by itself
  overflow     the input of a layer under fp16 autocast is too large
  twice        AdamW's second moment overflows, which does no harm yet; the next step's loss is NaN for another reason
  none         nothing goes wrong
Two JSON lines at the end: what the standing trace recorded, and, where nothing goes wrong, memory after a third of the steps and at the end.
"""
import ctypes
import json
import math
import sys
import time

import torch
from torch import nn

what, bad, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
ROWS, WIDTH = 8200, 128  # 1.05 million weights


class Mallinfo2(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in
                ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")]


mallinfo2 = ctypes.CDLL(None).mallinfo2
mallinfo2.restype = Mallinfo2


def settled():
    """Bytes in use once they stop falling: a thread writes the series."""
    least, looks = math.inf, 0
    while looks < 10:
        time.sleep(0.02)
        info = mallinfo2()
        used = info.uordblks + info.hblkhd
        least, looks = (used, 0) if used < least else (least, looks + 1)
    return least


class ClippingSGD(torch.optim.SGD):
    """Gradients are scaled to length 1 by a norm that happens to be 0."""

    @torch.no_grad()
    def step(self):
        gradients = [p.grad for group in self.param_groups for p in group["params"]]
        norm = torch.stack([g.norm() for g in gradients]).norm()
        for gradient in gradients:
            gradient.mul_(norm.clamp(max=1.0) / norm)
        super().step()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(ROWS, WIDTH)
        self.hidden = nn.Linear(WIDTH, 32)
        self.head = nn.Linear(32, 1)

    def forward(self, rows, gain):
        return self.head(torch.tanh(self.hidden(self.table(rows).mean(1) * gain)))


torch.manual_seed(7)
model = Net()
if what.startswith("eps"):
    model.half()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, eps=1e-3, foreach=what == "eps-foreach")
elif what == "twice":
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
elif what == "clip":
    optimizer = ClippingSGD(model.parameters(), lr=1e-2)
else:
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)


def probe(name):
    """A number of the probe's library, None without the probe."""
    return getattr(torch.ops.nanquest, name)() if "nanquest" in sys.modules else None


in_use = []
measured = (steps // 3, steps - 1) if what == "none" else ()  # it takes seconds of waiting
for step in range(steps):
    if step in measured:
        time.sleep(1.1)  # rows of the series wait for up to a second: with this step's they are written
    seen = step <= bad or not what.startswith("eps")
    rows = torch.randint(0, 100, (4, 6)) + (0 if seen else 100)
    target = torch.randn(4, 1).to(model.head.weight.dtype)
    gain = 1.0
    if step == bad:
        if what == "eps-second":
            optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, eps=1e-8)
        elif what.startswith("eps"):
            optimizer.param_groups[0]["eps"] = 1e-8
        elif what == "lr":
            optimizer.param_groups[0]["lr"] = math.inf
        elif what == "overflow":
            gain = 1e6
    if what == "twice" and step == bad + 1:
        gain = math.nan
    optimizer.zero_grad()
    with torch.autocast("cpu", torch.float16, enabled=what == "overflow"):
        out = model(rows, gain)
    loss = nn.functional.mse_loss(out.to(target.dtype), target)
    if what == "clip" and step == bad:
        loss = loss * 0
    if what == "twice" and step == bad:
        loss = loss * 1e24
    loss.backward()
    optimizer.step()
    if step in measured:
        in_use.append([settled(), probe("standing_bytes")])
print(json.dumps({"standing_steps": probe("standing_steps")}))
print(json.dumps(in_use))
if len(sys.argv) > 4:
    torch.save(model.state_dict(), sys.argv[4])
