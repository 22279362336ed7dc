"""Kills itself again and again: each child attaches, trains with a NaN in every step, and is killed at some moment after its first step.

usage: killed.py CHILDREN SEED: child i writes into killed-i/
"""
import os
import random
import signal
import sys
import time

import nanquest
import torch
from training import Training

children, chance = int(sys.argv[1]), random.Random(int(sys.argv[2]))
torch.set_num_threads(1)
for i in range(children):
    ready, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        nanquest.attach(run_dir=f"killed-{i}", level=("watch", "trace")[i % 2], max_incidents=10000)
        sys.stderr = open(os.devnull, "w")
        training = Training()
        while True:
            training.step(bad=training.steps >= 2)
            if training.steps <= 4:
                os.write(told, b"x")
    os.close(told)
    for _ in range(4 if i % 3 else 1):  # most after a bad step or two, however slow the machine is
        os.read(ready, 1)
    os.close(ready)
    time.sleep(chance.random() * 0.6)
    os.kill(pid, signal.SIGKILL)
    assert os.waitpid(pid, 0)[1] == signal.SIGKILL
print("killed", children)
