"""Trains for many steps. usage: endurance.py STEPS FIRST_BAD; from step FIRST_BAD on everything is NaN.

On stderr: by how many MiB the process grew over its second half, and seconds a step in each half.
"""
import sys
import time

import torch
from training import Training

steps, bad = int(sys.argv[1]), int(sys.argv[2])
torch.set_num_threads(1)


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 2**20


training = Training()
marks = []
for i in range(steps + 1):
    if i in (steps // 10, steps // 2, steps):
        marks.append((resident(), time.perf_counter(), i))
    if i < steps:
        training.step(bad=i == bad)
    if i % 10 == 9:
        with torch.no_grad():
            training.model(torch.randn(8, 16))
early, half, end = marks
print(training.digest())
print(f"grown {end[0] - half[0]:.2f} MiB, second part at {(end[1] - half[1]) / (end[2] - half[2]) * 1e6:.0f} us a step, "
      f"first at {(half[1] - early[1]) / (half[2] - early[2]) * 1e6:.0f}", file=sys.stderr)
