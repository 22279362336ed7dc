"""Under the probe: writes the numbers of the steps that are watched, as JSON, to FILE.RANK.

usage: watched_steps.py STEPS FILE (with RANK and the like in the environment: one of several ranks)
"""
import json
import os
import pathlib
import sys

import torch

rank = os.environ.get("RANK")
model = torch.nn.Linear(4, 2)
if rank is not None:
    torch.distributed.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(model)
optimizer, found, before = torch.optim.SGD(model.parameters(), lr=1e-3), [], 0
for step in range(int(sys.argv[1])):
    optimizer.zero_grad()
    model(torch.ones(3, 4)).square().mean().backward()
    optimizer.step()
    now = torch.ops.nanquest.standing_steps()  # counts those that are not watched
    found += [step] if now == before else []
    before = now
pathlib.Path(f"{sys.argv[2]}.{rank or 0}").write_text(json.dumps(found))
if rank is not None:
    torch.distributed.destroy_process_group()
