"""A healthy program of several processes, once for each optimizer and format.

usage: exact.py WAY[+clip] SAVE_AS OPTIMIZER/FORMAT…      (see ways.py; adamw, sgd; fp32, bf16)
Each takes STEPS steps; their weights after every step go to SAVE_AS.<rank>.
"""

import gc
import sys

import torch
import torch.distributed as dist
from torch import nn
from ways import Block, Spread

STEPS = 5



def train(way, kind, form, clip):
    """Weights of this rank by step and name."""
    torch.manual_seed(0)
    blocks = dist.get_world_size() if way == "pipeline" else 2
    spread = Spread(way, nn.Sequential(*(Block(16) for _ in range(blocks)), nn.Linear(16, 4)), low=form == "bf16")
    optimizer = spread.optimizer(kind)
    torch.manual_seed(spread.seed())
    weights = {}
    for step in range(STEPS):
        optimizer.zero_grad()
        spread.passes(lambda part: (torch.randn(8, 16), torch.randn(8, 4)))
        if clip:
            spread.clip()
        optimizer.step()
        spread.after_update()
        weights.update({f"{kind}/{form} {step} {name}": value for name, value in spread.weights().items()})
    return weights


if __name__ == "__main__":
    way, save_as, *specs = sys.argv[1:]
    way, _, clip = way.partition("+")
    dist.init_process_group("gloo")
    weights = {}
    for spec in specs:
        weights |= train(way, *spec.split("/"), clip)
        gc.collect()  # a net that is still there would be another one of the same program, which trains in turn with the next
    torch.save(weights, f"{save_as}.{dist.get_rank()}")
    dist.destroy_process_group()
