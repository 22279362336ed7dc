"""How the programs of these tests spread a net over their processes.

ddp, accumulated (two batches a step, the first under no_sync), averaged (updates of one's own, then weights are averaged), fsdp1, fsdp2,
offload (fsdp2 whose weights wait in the host's memory: they are there already), hsdp (of four ranks), tensor, sequence (tensor, where
norms have a part of the rows each), both (of four ranks: fsdp2 of what tensor leaves a rank), pipeline (a stage each, four micro-batches)
"""

import contextlib

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh


class Spot(nn.Module):
    """Where a program puts a fault."""

    fault = None

    def forward(self, x):
        if self.fault == "log":
            return x + torch.log(x.detach() * 0)
        if self.fault == "exp":
            return x + torch.exp(x + 1000)
        if self.fault == "root":
            return x + torch.sqrt(x * 0)
        return x


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.spot, self.down = nn.LayerNorm(width), nn.Linear(width, 2 * width), Spot(), nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(self.spot(nn.functional.gelu(self.up(self.norm(x)))))


class Spread:
    """What this rank has of a net: `model`. low: it computes in bf16, as is usual where a net is spread in this way."""

    def __init__(self, way, net, low=False):
        self.way, self.model, self.schedule = way, net, None
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.autocast = low and way != "fsdp1" and not self.fully_sharded()
        if way in ("ddp", "accumulated"):
            self.model = nn.parallel.DistributedDataParallel(net)
        elif way == "fsdp1":
            from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision
            policy = MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.float32) if low else None
            self.model = FullyShardedDataParallel(net, device_id=torch.device("cpu"), use_orig_params=True, mixed_precision=policy)
        elif way == "pipeline":
            from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
            last = self.rank == self.size - 1
            self.model = net[self.rank:] if last else net[self.rank:self.rank + 1]
            kind = Schedule1F1B if self.size > 2 else ScheduleGPipe
            stage = PipelineStage(self.model, self.rank, self.size, torch.device("cpu"))
            self.schedule = kind(stage, 4, loss_fn=nn.MSELoss())
        elif way in ("tensor", "sequence"):
            self.parallelize(net, init_device_mesh("cpu", (self.size,)))
        elif way == "both":
            mesh = init_device_mesh("cpu", (2, self.size // 2), mesh_dim_names=("data", "tensor"))
            self.parallelize(net, mesh["tensor"])
            self.shard(net, mesh["data"], low)
        elif self.fully_sharded():
            self.shard(net, init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard")) if way == "hsdp"
                       else init_device_mesh("cpu", (self.size,)), low)

    def fully_sharded(self):
        return self.way in ("fsdp2", "offload", "hsdp", "both")

    def shard(self, net, mesh, low):
        from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard
        policies = {"mp_policy": MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32) if low
                    else MixedPrecisionPolicy()}
        if self.way == "offload":
            policies["offload_policy"] = CPUOffloadPolicy(pin_memory=False)
        for part in net:
            fully_shard(part, mesh=mesh, **policies)
        fully_shard(net, mesh=mesh, **policies)

    def parallelize(self, net, mesh):
        from torch.distributed.tensor import Replicate, Shard
        from torch.distributed.tensor.parallel import (ColwiseParallel, PrepareModuleInput, RowwiseParallel, SequenceParallel,
                                                       parallelize_module)
        plan = {"up": ColwiseParallel(), "down": RowwiseParallel()}
        rows = Shard(0)
        if self.way == "sequence":
            plan = {"norm": SequenceParallel(sequence_dim=0), "up": ColwiseParallel(input_layouts=rows),
                    "down": RowwiseParallel(output_layouts=rows)}
            parallelize_module(net, mesh, {
                "0": PrepareModuleInput(input_layouts=Replicate(), desired_input_layouts=rows, use_local_output=True),
                str(len(net) - 1): ColwiseParallel(input_layouts=rows, output_layouts=Replicate())})
        for part in net:
            if isinstance(part, Block):
                parallelize_module(part, mesh, plan)

    def seed(self):
        """Of batches: ranks that share a model's parts are given the same, others their own."""
        return 100 + {"tensor": 0, "sequence": 0, "pipeline": 0, "both": self.rank // 2}.get(self.way, self.rank)

    def optimizer(self, kind):
        foreach = self.way not in ("tensor", "both")  # spread weights and others don't go into one call for all of them
        return {"adamw": lambda weights: torch.optim.AdamW(weights, lr=1e-3, foreach=foreach),
                "sgd": lambda weights: torch.optim.SGD(weights, lr=1e-2, momentum=0.9, foreach=foreach)}[kind](self.model.parameters())

    def passes(self, batch):
        """Forward and backward of one step; `batch(part)` gives inputs and targets of each part of it."""
        low = lambda: torch.autocast("cpu", torch.bfloat16) if self.autocast else contextlib.nullcontext()  # noqa: E731
        if self.schedule:
            x, target = batch(0)
            with low():
                self.schedule.step(*[x] * (self.rank == 0), **{"target": target} if self.rank == self.size - 1 else {})
            return
        for part in range(2 if self.way == "accumulated" else 1):
            x, target = batch(part)
            with self.model.no_sync() if self.way == "accumulated" and part == 0 else contextlib.nullcontext():
                with low():
                    loss = (self.model(x) - target).square().mean()
                loss.backward()

    def clip(self):
        norm = getattr(self.model, "clip_grad_norm_", None)  # FSDP1 has its own
        norm(1.0) if norm else nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)

    def after_update(self):
        if self.way == "averaged":
            with torch.no_grad():
                for parameter in self.model.parameters():
                    dist.all_reduce(parameter)
                    parameter /= self.size

    def weights(self):
        """This rank's part of each."""
        return {name: local(parameter).clone() for name, parameter in self.model.named_parameters()}


def local(tensor):
    return getattr(tensor, "_local_tensor", tensor).detach()
