"""Functions that are called at incidents: one of them fails. Two batches are bad."""
import sys

import torch

import nanquest

told = []


@nanquest.on_incident
def note(incident):
    told.append(incident)


@nanquest.on_incident
def fails(incident):
    told.append("called")
    raise OSError("no route to the pager")


nanquest.attach(run_dir=sys.argv[1], level="watch", on_incident="skip")
torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step in range(8):
    rows = torch.randn(5, 4)
    if step in (3, 5):
        rows[2, 1] = float("nan")
    optimizer.zero_grad()
    model(rows).square().mean().backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
nanquest.detach()
assert told.count("called") == 1, told
for incident in told:
    if incident != "called":
        print(incident.step, incident.directory, incident.file, incident.cause, sep="|")
