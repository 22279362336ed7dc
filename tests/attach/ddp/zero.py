"""A program that trains under DeepSpeed's ZeRO, as its tutorial writes it.

usage: zero.py STAGE FORMAT KIND batch|weight|op|healthy SAVE_AS      the fault comes in step 5, on the last rank

STAGE: 1 to 3. FORMAT: fp32, bf16 (DeepSpeed has no fp16 on processors). KIND: plain, accumulated (two micro-batches a step, the first
is the bad one), offload (of the optimizer's part), clipped.
"""

import sys

import deepspeed
import torch
from torch import nn

from ways import Block

stage, kept, kind, fault, save_as = int(sys.argv[1]), *sys.argv[2:6]
sys.modules["deepspeed.comm.torch"].build_shm_op = lambda: None  # compiles for minutes what only inference uses
deepspeed.init_distributed("gloo")
rank, size = torch.distributed.get_rank(), torch.distributed.get_world_size()
torch.manual_seed(0)
model = nn.Sequential(Block(32), Block(32), nn.Linear(32, 8))
parts = 2 if kind == "accumulated" else 1
settings = {
    "train_micro_batch_size_per_gpu": 16,
    "gradient_accumulation_steps": parts,
    "gradient_clipping": 1.0 if kind == "clipped" else 0.0,
    "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}},
    "zero_optimization": {"stage": stage, **({"offload_optimizer": {"device": "cpu"}} if kind == "offload" else {}),
                          **({"stage3_param_persistence_threshold": 0} if stage == 3 else {})},
    "zero_force_ds_cpu_optimizer": False,
    **({"bf16": {"enabled": True}} if kept == "bf16" else {}),
}
engine, optimizer, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=settings)
dtype = {"fp32": torch.float32, "bf16": torch.bfloat16}[kept]

torch.manual_seed(100 + rank)
for step in range(8):
    bad = step == 5 and rank == size - 1
    if fault == "weight" and bad:
        with torch.no_grad():
            weight = model[1].down.weight
            (weight.ds_tensor if stage == 3 else weight).view(-1)[7] = float("nan")
    for part in range(parts):
        x, target = torch.randn(16, 32, dtype=dtype), torch.randn(16, 8, dtype=dtype)
        if fault == "batch" and bad and part == 0:
            x[3, 4] = float("nan")
        model[1].spot.fault = "log" if fault == "op" and bad and part == 0 else None
        loss = (engine(x) - target).float().square().mean()
        engine.backward(loss)
        engine.step()
with deepspeed.zero.GatheredParameters([*model.parameters()], enabled=stage == 3):
    torch.save({name: p.detach().float() for name, p in model.named_parameters()}, f"{save_as}.{rank}")
engine.destroy()
torch.distributed.destroy_process_group()
