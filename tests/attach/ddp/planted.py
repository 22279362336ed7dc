"""One fault in one of several processes, in step 3 of 5.

usage: planted.py WAY FAULT RANK OPTIMIZER
WAY: those of ways.py, and mixed (fsdp2 in bf16)
FAULT: log (of zero), exp (of a thousand), root (at zero: only its derivative is bad), weight (NaN in up.weight of the last block, or of
a pipeline stage), batch (NaN in a sample; of pipelines the first stage's, of tensor parallel ranks all of theirs, as they share it)
"""

import sys

import torch
import torch.distributed as dist
from torch import nn
from ways import Block, Spread, local

way, fault, at, kind = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
blocks = [Block(16), Block(16)]
spread = Spread("fsdp2" if way == "mixed" else way, nn.Sequential(*blocks, nn.Linear(16, 4)), low=way == "mixed")
block = blocks[rank] if way == "pipeline" else blocks[1]
optimizer = spread.optimizer(kind)
torch.manual_seed(spread.seed())
for step in range(5):
    mine = step == 3 and rank == at
    bad_batch = fault == "batch" and (mine or step == 3 and way == "tensor")
    block.spot.fault = fault if mine else None
    if fault == "weight" and mine:
        local(block.up.weight).view(-1)[3] = float("nan")

    def batch(part):
        x, target = torch.randn(8, 16), torch.randn(8, 4)
        if bad_batch and part == 0:
            x[5, 2] = float("nan")
        return x, target

    optimizer.zero_grad()
    spread.passes(batch)
    optimizer.step()
    spread.after_update()
spread = None  # holds the process group: its threads would outlive its end and meet the interpreter's
dist.destroy_process_group()
