"""A model in bf16 whose tail has no fp32: when it is called again, is what the failed call made still there? Prints "gone" if not."""
import sys
import weakref

import torch
from torch import nn

torch.manual_seed(0)
failed = []    # weak: what the call in fp32 had made when it failed


class Tail(nn.Module):
    def forward(self, x):
        if x.dtype == torch.float32:
            failed.append(weakref.ref(x))
            raise RuntimeError("only for 16 bits")
        if failed:
            left = [kind for kind in ("activation", "input") if failed[-1 if kind == "activation" else 0]() is not None]
            left += ["error"] if sys.exc_info()[1] is not None else []
            print(" and ".join(left) or "gone")
            failed.clear()
        return x


class Head(nn.Linear):
    def forward(self, x):
        if x.dtype == torch.float32:
            failed.append(weakref.ref(x))
        return super().forward(x)


model = nn.Sequential(Head(4, 4), nn.Linear(4, 1), Tail()).to(torch.bfloat16)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step in range(4):
    x = torch.randn(3, 4, dtype=torch.bfloat16)
    loss = model(x).float().square().mean() * (float("nan") if step == 1 else 1.0)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
