"""A program whose weights are spread over two processes.

usage: sharded.py fsdp2|tensor|fsdp1 batch|closure|weight|op|grows|arrives|returns|healthy SAVE_AS      the fault comes in step 5, on rank 1

closure: as batch, where the optimizer computes the gradients itself, as under Lightning.
grows: a row of the batch near the end of fp32, which each of six layers finds too large, beside a mask of infinities.

arrives, returns: a bad weight whose other rank learns of it by the sum of the forward pass alone; it stays, or is mended
after the step and comes again in step 7.
"""

import sys

import torch
import torch.distributed as dist
from torch import nn
from ways import Block, Spread, local

way, fault, save_as = sys.argv[1:]
dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = nn.Sequential(Block(32), Block(32), nn.Linear(32, 8))
if fault == "grows":
    model = nn.Sequential(*(Block(32) for _ in range(6)), nn.LayerNorm(32), nn.Linear(32, 8))
arrives = fault in ("arrives", "returns")
if arrives:
    model = nn.Sequential(Block(32))
    model[0].norm.requires_grad_(False)
spread = Spread(way, model)
model, optimizer = spread.model, spread.optimizer("adamw")


def put_into_weight(value):
    with torch.no_grad():
        local(next(p for n, p in reversed([*model.named_parameters()]) if n.endswith("down.weight"))).view(-1)[7] = value


torch.manual_seed(spread.seed())
for step in range(8):
    bad = step == 5 and (rank == 1 or way == "tensor" and fault != "weight")
    x, target = torch.randn(16, 32), torch.randn(16, 8)
    if bad and fault in ("batch", "closure"):
        x[3, 4] = float("nan")
    if bad and fault == "grows":
        x[3, :16] = 3e38
    bad = bad or fault == "returns" and step == 7 and rank == 1
    if bad and (fault == "weight" or arrives and rank == 1):
        put_into_weight(float("nan"))
    if fault == "closure":
        def closure():
            optimizer.zero_grad()
            loss = (model(x) - target).square().mean()
            loss.backward()
            return loss
        optimizer.step(closure)
        continue
    y = model(x)
    if fault == "grows":
        y = torch.where(torch.arange(8) > 6, torch.tensor(float("-inf")), y).softmax(1)
    if bad and fault == "op":
        y = torch.log(y.clamp(min=0))
    loss = y.sum() if arrives else (y - target).square().mean()
    optimizer.zero_grad()
    loss.backward()
    if bad and fault == "returns" and rank == 1:
        put_into_weight(0)
        for parameter in model.parameters():
            if parameter.grad is not None:
                local(parameter.grad).zero_()
    if way != "tensor":
        spread.clip()
    optimizer.step()
torch.save(spread.weights(), f"{save_as}.{rank}")
dist.destroy_process_group()
