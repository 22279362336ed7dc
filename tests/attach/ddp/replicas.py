"""Ranks that train together, one way after another; in some of them one rank's weights become others than they should be.

usage: replicas.py SAVE_AS WAY[,WAY…]     (WAY: a function below; flip:RANK:STEP, flip_frozen and large change one bit of a weight, spoil
makes it infinite, wrong_product lets a processor fail)

Each way makes STEPS updates of a model of its own. What it is left with is saved as SAVE_AS.WAY.RANK.
"""

import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS, WIDTH = 12, 6
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
if "nanquest" in sys.modules:
    @sys.modules["nanquest"].on_incident
    def told(incident):
        print(f"rank {rank} is told: {incident.file!r} {incident.cause}", file=sys.stderr, flush=True)


class Net(nn.Module):
    """`own` is a weight that each rank may have for itself."""

    def __init__(self, width=WIDTH):
        super().__init__()
        self.first, self.middle, self.last = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, width)
        self.norm = nn.BatchNorm1d(width)
        self.own = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return self.last(self.norm(torch.tanh(self.middle(torch.tanh(self.first(x)))))) * self.own


def change_bit(weight):
    with torch.no_grad():
        weight.view(torch.int32)[1, 1] ^= 1 << 12  # further down rounding might lose it again


def average(model):
    with torch.no_grad():
        for parameter in model.parameters():
            dist.all_reduce(parameter)
            parameter /= size


def step(model, optimizer, width=WIDTH, rows=4):
    optimizer.zero_grad()
    model(torch.randn(rows, width)).square().mean().backward()
    optimizer.step()


def trained(net, make=torch.optim.AdamW, wrap=None, before=lambda number: None, after=lambda number: None, width=WIDTH):
    model = (wrap or DistributedDataParallel)(net)
    optimizer = make([p for p in net.parameters() if p.requires_grad], lr=1e-2)
    for number in range(STEPS):
        before(number)
        step(model, optimizer, width)
        after(number)
    return net


def plain(net):
    return trained(net)


def flip(net, who, when, change=change_bit):
    weight = net.middle.weight

    def before(number):
        if rank == int(who) and number == int(when):
            change(weight)
    return trained(net, before=before, width=weight.shape[1])


def large(net, who, when):
    return flip(Net(1024), who, when)


def flip_frozen(net, who, when):
    net.middle.requires_grad_(False)
    return flip(net, who, when)


def spoil(net, who, when):
    return flip(net, who, when, change=lambda weight: weight.data[1, 1].fill_(float("inf")))


def wrong_product(net, who, when):
    """All ranks have the same batch, but of one product a processor makes something else."""
    library, armed = torch.library.Library("aten", "IMPL"), []

    def product(a, b):
        out = torch.mm(a, b, out=a.new_empty((a.shape[0], b.shape[1])))
        if armed:
            armed.clear()
            out.view(-1).numpy()[5] = float("nan")
        return out
    library.impl("mm", product, "CPU")

    class Product(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(WIDTH, WIDTH))

        def forward(self, x):
            if self.faulty:
                armed.append(True)
            return torch.mm(x, self.weight)
    net.middle = Product()
    torch.manual_seed(3)

    def before(number):
        net.middle.faulty = rank == int(who) and number == int(when)
    return trained(net, before=before)


def loaded_on_one(net):
    """A classic: the checkpoint is read after the model has been wrapped, by one rank."""
    def wrap(net):
        model = DistributedDataParallel(net)
        if rank == 0:
            with torch.no_grad():
                net.last.weight.mul_(0.5)
        return model
    return trained(net, wrap=wrap)


def accumulates(net):
    model, optimizer = DistributedDataParallel(net), torch.optim.SGD(net.parameters(), lr=1e-2)
    for _ in range(STEPS):
        optimizer.zero_grad()
        with model.no_sync():
            model(torch.randn(4, WIDTH)).square().mean().backward()
        model(torch.randn(4, WIDTH)).square().mean().backward()
        optimizer.step()
    return net


def static(net):
    return trained(net, wrap=lambda net: DistributedDataParallel(net, static_graph=True))


def ignored(net):
    with torch.no_grad():
        net.own.fill_(1 + rank)

    def wrap(net):
        DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(net, ["own"])
        return DistributedDataParallel(net)
    return trained(net, wrap=wrap)


def frozen(net):
    """Weights that do not train may differ from the beginning: nothing promises that they are alike."""
    net.first.requires_grad_(False)
    net.own.requires_grad_(False)

    def before(number):
        with torch.no_grad():
            net.own.fill_(rank + number)
    return trained(net, before=before)


def unused(net):
    net.spare = nn.Linear(WIDTH, WIDTH)
    return trained(net, wrap=lambda net: DistributedDataParallel(net, find_unused_parameters=True))


def two_optimizers(net):
    model = DistributedDataParallel(net)
    one, other = torch.optim.SGD(net.first.parameters(), lr=1e-2), torch.optim.AdamW(net.last.parameters(), lr=1e-2)
    for _ in range(STEPS):
        model.zero_grad()
        model(torch.randn(4, WIDTH)).square().mean().backward()
        one.step()
        other.step()
    return net


def local(net):
    """Local SGD without DistributedDataParallel."""
    return trained(net, wrap=lambda net: net, after=lambda number: average(net) if number % 3 == 0 else None)


def local_no_sync(net):
    """Local SGD inside of it: gradients are summed in every third update only, in which weights are not alike yet."""
    model, optimizer = DistributedDataParallel(net), torch.optim.SGD(net.parameters(), lr=1e-2)
    for number in range(STEPS):
        if number % 3 == 0:
            step(model, optimizer)
            average(net)
            continue
        with model.no_sync():
            step(model, optimizer)
    return net


def post_local(net):
    from torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook import PostLocalSGDState, post_localSGD_hook
    from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
    from torch.distributed.optim import PostLocalSGDOptimizer

    def wrap(net):
        model = DistributedDataParallel(net)
        alone = [dist.new_group([each]) for each in range(size)][rank]
        model.register_comm_hook(PostLocalSGDState(process_group=None, subgroup=alone, start_localSGD_iter=2), post_localSGD_hook)
        return model
    return trained(net, wrap=wrap, make=lambda parameters, lr: PostLocalSGDOptimizer(
        torch.optim.SGD(parameters, lr=lr), PeriodicModelAverager(period=3, warmup_steps=2)))


def own_hook(net):
    """Every rank keeps its own gradient but in every second update."""
    calls = [0]

    def hook(state, bucket):
        calls[0] += 1
        if calls[0] % 2:
            future = torch.futures.Future()
            future.set_result(bucket.buffer())
            return future
        return dist.all_reduce(bucket.buffer(), async_op=True).get_future().then(lambda done: done.value()[0] / size)

    def wrap(net):
        model = DistributedDataParallel(net)
        model.register_comm_hook(None, hook)
        return model
    return trained(net, wrap=wrap)


def compressed(net):
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook

    def wrap(net):
        model = DistributedDataParallel(net)
        model.register_comm_hook(None, fp16_compress_hook)
        return model
    return trained(net, wrap=wrap)


def own_gradients(net):
    """What becomes of the common gradient is each rank's affair."""
    model, optimizer = DistributedDataParallel(net), torch.optim.SGD(net.parameters(), lr=1e-2)
    for _ in range(STEPS):
        optimizer.zero_grad()
        model(torch.randn(4, WIDTH)).square().mean().backward()
        for parameter in net.parameters():
            parameter.grad.mul_(1 + rank)
        optimizer.step()
    return net


def late(net, keeps=False):
    """Every rank by itself, from weights of its own; then wrapped, which makes them alike."""
    with torch.no_grad():
        net.first.weight.add_(rank)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
    for _ in range(4):
        step(net, optimizer)
    model = DistributedDataParallel(net)
    optimizer = optimizer if keeps else torch.optim.AdamW(net.parameters(), lr=1e-2)
    for _ in range(STEPS - 4):
        step(model, optimizer)
    return net


def late_moments(net):
    """The same, but the optimizer keeps what it has gathered before: no rank's update is that of another."""
    return late(net, keeps=True)


def uneven(net):
    """One rank has fewer batches: it makes fewer updates, twice."""
    net.norm = nn.Identity()  # whose buffers join would have to be told of
    model, optimizer = DistributedDataParallel(net), torch.optim.SGD(net.parameters(), lr=1e-2)
    for _ in range(2):
        with model.join():
            for _ in range(STEPS // 2 - rank):
                step(model, optimizer)
    for _ in range(STEPS):
        step(model, optimizer)
    return net


def sharded_states(net):
    from torch.distributed.optim import ZeroRedundancyOptimizer
    return trained(net, make=lambda parameters, lr: ZeroRedundancyOptimizer(parameters, torch.optim.AdamW, lr=lr))


def slow(net):
    return trained(net, before=lambda number: time.sleep(0.2 * (rank == 1)))


def one_without(net):
    """Rank 2 leaves no more hashes, so rank 1 can't be judged."""
    def before(number):
        if number == 3 and rank == 2 and "nanquest" in sys.modules:
            sys.modules["nanquest"].detach()
        if number == 5 and rank == 1:
            change_bit(net.middle.weight)
    return trained(net, before=before)


def dies(net):
    """Rank 2 is gone in the middle; the others hear of it from their collective."""
    def before(number):
        if number == 6 and rank == 2:
            os._exit(0)
    try:
        return trained(net, before=before)
    except RuntimeError as error:
        print(f"rank {rank} heard of it {'after a timeout' if 'imed out' in str(error) else 'from its peer'}", file=sys.stderr, flush=True)
        os._exit(0)


def main():
    for way in sys.argv[2].split(","):
        name, *facts = way.split(":")
        torch.manual_seed(4)
        net = Net()
        torch.manual_seed(10 + rank)
        net = globals()[name](net, *facts)
        torch.save(net.state_dict(), f"{sys.argv[1]}.{name}.{rank}")
        dist.barrier()
    dist.destroy_process_group()


main()
