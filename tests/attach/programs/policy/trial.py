"""A model in bf16, and what is called first after its bad step. usage: trial.py HOW

evaluation: it is evaluated, and raises in fp32; draws: so it is, having drawn random numbers; healthy: it is evaluated without
trouble, but raises in fp32 where it trains; thread: another thread calls it; part: only its parts are called until the run is over.
"""
import sys
import threading

import torch
from torch import nn

HOW, LOW = sys.argv[1], torch.bfloat16
torch.manual_seed(0)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.drop, self.tail = nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1)

    def forward(self, x):
        x = x @ self.body.weight.t() if HOW == "thread" else self.body(x)
        if HOW == "draws" or self.training:
            x = nn.functional.dropout(x, 0.5, training=True)
        casts = {"evaluation": not self.training, "draws": not self.training, "part": not self.training,
                 "healthy": self.training}.get(HOW, False)
        if casts:
            return x.to(LOW) @ self.tail.weight.t()
        return self.tail(x)


model = Model().to(LOW)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)


def evaluate():
    model.eval()
    with torch.no_grad():
        out = model(torch.ones(2, 4, dtype=LOW))
    model.train()
    return out.float().flatten().tolist()


def train(bad, parts=False):
    x = torch.randn(3, 4, dtype=LOW)
    out = model.tail(model.body(x)) if parts else model(x)
    loss = out.float().square().mean() * (float("nan") if bad else 1.0)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


seen = []
for step in range(6):
    train(bad=step == 2, parts=HOW == "part" and step > 2)
    if HOW == "thread" and step == 2:
        failures = []

        def look():
            try:
                evaluate()
            except Exception as error:
                failures.append(error)

        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        assert not failures, failures
    elif HOW != "part":
        seen.append(evaluate())
if HOW == "part":
    try:
        evaluate()
    except RuntimeError as error:
        print(error)
print(seen)
print(torch.rand(2).tolist(), [p.double().sum().item() for p in model.parameters()])
