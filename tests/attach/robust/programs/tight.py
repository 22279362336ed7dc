"""Trains a model of some MiB in tight quarters. usage: tight.py QUARTERS

memory:N     from step 3 on the process may have only N MiB more address space than it has then
file:N       no file may grow beyond N KiB
replace:DIR  in step 3 DIR is removed, if it is there, and a file takes its place
none         as it is
"""
import pathlib
import resource
import shutil
import sys

import torch
from torch import nn

kind, _, value = sys.argv[1].partition(":")
torch.set_num_threads(1)
torch.manual_seed(8)
model = nn.Sequential(nn.Linear(64, 1024), nn.Tanh(), nn.Linear(1024, 1024), nn.Linear(1024, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)
if kind == "file":
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(value) << 10, resource.RLIM_INFINITY))
for step in range(9):
    if step == 3 and kind == "memory":
        with open("/proc/self/statm") as file:
            now = int(file.read().split()[0]) * 4096
        resource.setrlimit(resource.RLIMIT_AS, (now + (int(value) << 20), resource.RLIM_INFINITY))
    if step == 3 and kind == "replace" and pathlib.Path(value).is_dir():
        shutil.rmtree(value)
        pathlib.Path(value).write_text("in the way")
    x = torch.randn(4, 64)
    if step in (4, 6):
        x[0, 0] = float("inf")
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
print("done", sum(float(torch.nan_to_num(p.detach()).double().sum()) for p in model.parameters()))
