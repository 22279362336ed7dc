"""Programs that are interrupted, from inside at a named place or from outside.

usage: interrupts.py PLACE ACTION
PLACE   forward, backward, update, between: where it happens, in step 4
ACTION  SIGINT, SIGTERM: the signal is raised there and the program has nothing to say about it
        handled: the same with a handler of the program's own, which ends the loop in order
        caught: KeyboardInterrupt is caught, and the loop goes on
        error: a RuntimeError as of an allocation that failed, caught, and the loop goes on
        wait: the program says so and trains on until somebody ends it
"""
import signal
import sys

import torch
from torch import nn
from training import Training

place, action = sys.argv[1], sys.argv[2]
training = Training()
stopping = []


def happen():
    if training.steps != 4:
        return
    if action in ("SIGINT", "SIGTERM"):
        signal.raise_signal(getattr(signal, action))
    elif action == "handled":
        signal.raise_signal(signal.SIGTERM)
    elif action == "caught":
        training.steps += 1
        signal.raise_signal(signal.SIGINT)
    elif action == "error":
        training.steps += 1
        torch.empty(1 << 55)


class Interrupted(nn.Module):
    def forward(self, x):
        if place == "forward":
            happen()
        elif place == "backward" and x.requires_grad:
            x.register_hook(lambda gradient: happen())
        return x


training.model.insert(3, Interrupted())
if place == "update":
    training.optimizer.register_step_pre_hook(lambda *_: happen())
if action == "handled":
    signal.signal(signal.SIGTERM, lambda *_: stopping.append(True))
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
limit = 1 << 30 if action == "wait" else 10
while training.steps < limit and not stopping:
    try:
        training.step(bad=training.steps in (2, 7))
        if place == "between":
            happen()
    except (KeyboardInterrupt, RuntimeError) as error:
        if action not in ("caught", "error"):
            raise
        print("caught", type(error).__name__)
    if action == "wait" and training.steps == 5:
        print("training", flush=True)
print(training.digest())
