"""A small language model on made rows: `healthy`; `sample`, one batch of which has targets that nothing predicts; `rate`, far too high
from the start on; `replaced`, by a new model with a new optimizer; or `again`, with a new optimizer and other targets. All of them stay
finite."""

import sys

import torch

kind, steps = sys.argv[1], int(sys.argv[2])
torch.manual_seed(0)
torch.set_num_threads(1)
VOCABULARY, LENGTH, BATCH = 64, 16, 16


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(VOCABULARY, 32)
        self.hidden = torch.nn.Linear(32, 64)
        self.head = torch.nn.Linear(64, VOCABULARY)

    def forward(self, tokens):
        return self.head(torch.tanh(self.hidden(self.embedding(tokens))))


model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=3.0 if kind == "rate" else 3e-3)
successor = torch.randperm(VOCABULARY)
for step in range(steps):
    tokens = torch.randint(VOCABULARY, (BATCH, LENGTH))
    noise = torch.rand(BATCH, LENGTH) < 0.3
    targets = torch.where(noise, torch.randint(VOCABULARY, (BATCH, LENGTH)), successor[tokens])
    if kind == "sample" and step == 150:
        targets = successor[successor[tokens]]
    if kind == "replaced" and step == 150:
        model = Model()
    if kind == "again" and step == 150:
        successor = torch.randperm(VOCABULARY)
    if kind in ("replaced", "again") and step == 150:
        optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
        targets = successor[tokens]
    loss = torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 50 == 49:
        print(step, f"{loss.item():.4f}")
print("last", f"{loss.item():.4f}", sum(p.detach().double().sum().item() for p in model.parameters()))
