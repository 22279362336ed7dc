"""Healthy programs save infinities and NaN that are no damage. Prints the names of the files."""
import os

import torch
from torch import nn

torch.manual_seed(1)
os.makedirs("out", exist_ok=True)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.last = nn.Linear(8, 1)
        self.register_buffer("mask", torch.full((8, 8), float("-inf")).triu(1))
        self.register_buffer("grown", torch.zeros(4, 4))  # made anew, longer, when it is needed
        self.register_buffer("smallest", torch.tensor(float("inf")))  # of an observer that has seen nothing
        self.register_buffer("largest", torch.tensor(float("-inf")))
        self.register_buffer("unset", torch.full((3,), float("nan")))
        self.bias = nn.Parameter(torch.full((8, 8), float("-inf")).triu(1), requires_grad=False)  # a table that does not train
        start = torch.zeros(8, 8)
        start[:, 0] = float("-inf")  # a transition that can't be, as conditional random fields have them
        self.transitions = nn.Parameter(start)

    def forward(self, x):
        if len(self.grown) < 6 and model.steps >= 3:
            self.grown = torch.full((6, 6), float("-inf")).triu(1)
        scores = torch.softmax(self.first(x) @ self.transitions[:, 1:].clamp(min=-9).new_zeros(8, 8) + self.mask + self.bias, -1)
        return self.last(x + scores + torch.softmax(self.transitions, -1).sum(0))


model = Block()
model.steps = 0
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
history = torch.full((100,), float("nan"))
best = torch.tensor(float("inf"))
for step in range(8):
    model.steps = step
    x = torch.randn(8, 8)
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    plateau.step(float("inf"))
    history[step] = loss.item()
    torch.save(
        {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": plateau.state_dict(),
            "best": best,
            "callbacks": {"EarlyStopping": {"best_score": torch.tensor(float("inf")), "current_score": torch.tensor(float("nan"))}},
            "history": history,
            "val": [torch.tensor(float("nan")) for _ in range(6)],
        },
        f"out/all-{step}.pt",
    )
    torch.save(model, f"out/model-{step}.pt")
    # What a program dumps to look at it, and its data.
    torch.save({"weight": torch.full((5,), float("nan")), "x": torch.full((8, 8), float("nan"))}, f"out/classes-{step}.pt")
    for p in model.parameters():
        if p.grad is not None:
            p.grad.fill_(float("nan"))
    torch.save({n: p.grad for n, p in model.named_parameters()}, f"out/grads-{step}.pt")
    torch.save({"dump": {n: p.grad for n, p in model.named_parameters()}}, f"out/dump-{step}.pt")
    torch.save(torch.full((64, 8), float("nan")), f"out/data-{step}.pt")
print(len(os.listdir("out")), "files")
