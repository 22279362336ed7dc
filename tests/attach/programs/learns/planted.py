"""planted.py NAME: a small training in which something is never learned, for 60 updates. Prints a hash of the weights and moments."""
import copy
import hashlib
import sys

import numpy
import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(3)
STEPS = 60


def mlp(dtype=torch.float32, width=16):
    return nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 4)).to(dtype)


def rows(dtype=torch.float32):
    x = torch.randn(32, 8, dtype=dtype)
    return x, x[:, :4].sin()


def train(model, optimizer, forward=None, steps=STEPS, dtype=torch.float32):
    for _ in range(steps):
        x, y = rows(dtype)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss((forward or model)(x), y)
        loss.backward()
        optimizer.step()


class Tower(nn.Module):
    def __init__(self, cut):
        super().__init__()
        self.body, self.head, self.cut = nn.Sequential(nn.Linear(8, 16), nn.Tanh()), nn.Linear(16, 4), cut

    def forward(self, x):
        return self.head(self.cut(self.body(x)))


def detached(cut):
    model = Tower(cut)
    train(model, torch.optim.AdamW(model.parameters(), lr=1e-3))


def loss_taken_out():
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(STEPS):
        x, y = rows()
        optimizer.zero_grad()
        loss = torch.tensor(nn.functional.mse_loss(model(x), y).item(), requires_grad=True)
        loss.backward()
        optimizer.step()


def cleared_before_the_update():
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(STEPS):
        x, y = rows()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.zero_grad()
        optimizer.step()


def left_out_head():
    model = Tower(lambda h: h)
    train(model, torch.optim.Adam(model.body.parameters(), lr=1e-3))


def added_later():
    model = Tower(lambda h: h)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    model.head = nn.Sequential(model.head, nn.Linear(4, 4))
    train(model, optimizer)


def replaced():
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    model = copy.deepcopy(model)
    train(model, optimizer)


def dead_relu():
    model = mlp()
    with torch.no_grad():
        model[2].bias.fill_(-100.0)
    train(model, torch.optim.SGD(model.parameters(), lr=1e-2))


def saturated():
    model = nn.Sequential(nn.Linear(8, 16), nn.Sigmoid(), nn.Linear(16, 4))
    with torch.no_grad():
        model[0].bias.fill_(200.0)
    train(model, torch.optim.SGD(model.parameters(), lr=1e-2))


def swallowed(dtype, kind, rate, **settings):
    model = mlp(dtype)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.1 * p.sign())
    train(model, kind(model.parameters(), lr=rate, **settings), dtype=dtype)


def norms_in_bf16():
    model = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.Linear(16, 4)).bfloat16()
    train(model, torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.0), dtype=torch.bfloat16)


def never_cleared(model, optimizer):
    for _ in range(STEPS):
        x, y = rows()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()


def cleared_elsewhere():
    """zero_grad is called on a copy of the model."""
    model = mlp()
    other, optimizer = copy.deepcopy(model), torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(STEPS):
        x, y = rows()
        other.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


class HugeGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 3e38


def scaler_skips(**settings):
    """The scale that overflows never falls."""
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    scaler = torch.amp.GradScaler("cpu", **settings)
    for _ in range(STEPS):
        x, y = rows()
        optimizer.zero_grad()
        scaler.scale(nn.functional.mse_loss(HugeGradient.apply(model(x)), y)).backward()
        scaler.step(optimizer)
        scaler.update()


def flushed(factor, kind):
    """fp16 by autocast, without a loss scaler."""
    model = mlp(width=64)
    optimizer = kind(model.parameters(), lr=1e-3)
    for _ in range(STEPS):
        x, y = rows()
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = factor * nn.functional.mse_loss(model(x).float(), y)
        loss.backward()
        optimizer.step()


class Block(nn.Module):
    def __init__(self, noise, **settings):
        super().__init__()
        self.first, self.noise, self.last = nn.Linear(8, 32), noise, nn.Linear(32, 8)
        self.settings = settings

    def run(self, x):
        return x + self.last(self.noise(self.first(x)).relu())

    def forward(self, x):
        return checkpoint(self.run, x, **self.settings)


class NumPyNoise(nn.Module):
    """Dropout with numbers of NumPy, which checkpointing does not keep."""

    def forward(self, h):
        return h * torch.from_numpy(numpy.random.binomial(1, 0.8, h.shape)).to(h) / 0.8


def checkpointed(noise, **settings):
    model = nn.Sequential(nn.Linear(8, 8), Block(noise, **settings), Block(noise, **settings), nn.Linear(8, 4))
    train(model, torch.optim.Adam(model.parameters(), lr=1e-3))


def averaged(average_of, decay, closure=False):
    """An average in the format of the weights."""
    model = mlp(torch.bfloat16, width=32)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    update = average_of(model, decay)

    def gradients():
        x, y = rows(torch.bfloat16)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        return loss

    for _ in range(STEPS):
        if closure:
            optimizer.step(gradients)
        else:
            gradients()
            optimizer.step()
        with torch.no_grad():
            update()


def torchs_average(model, decay):
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(decay))
    update = average.update_parameters
    update(model)  # the first one copies
    return lambda: update(model)


def own_average(model, decay):
    shadow = {name: p.detach().clone() for name, p in model.named_parameters()}
    return lambda: [shadow[name].mul_(decay).add_(p.data, alpha=1 - decay) for name, p in model.named_parameters()]


PLANTED = {
    "average_in_bf16": lambda: averaged(torchs_average, 0.9999),
    "average_in_a_closure": lambda: averaged(torchs_average, 0.9999, closure=True),
    "own_average_in_bf16": lambda: averaged(own_average, 0.9999),
    "dropout_not_kept": lambda: checkpointed(nn.Dropout(0.1), use_reentrant=False, preserve_rng_state=False),
    "dropout_not_kept_reentrant": lambda: checkpointed(nn.Dropout(0.1), use_reentrant=True, preserve_rng_state=False),
    "noise_of_numpy": lambda: checkpointed(NumPyNoise(), use_reentrant=False),
    "detach": lambda: detached(lambda h: h.detach()),
    "data": lambda: detached(lambda h: h.data * 2),
    "no_graph": lambda: detached(lambda h: h.clone().requires_grad_(False) if not h.requires_grad else torch.no_grad()(lambda t: t * 1.5)(h)),
    "loss_taken_out": loss_taken_out,
    "cleared_before_the_update": cleared_before_the_update,
    "left_out_head": left_out_head,
    "added_later": added_later,
    "replaced": replaced,
    "dead_relu": dead_relu,
    "saturated": saturated,
    "bf16_adam": lambda: swallowed(torch.bfloat16, torch.optim.AdamW, 1e-5),
    "bf16_sgd": lambda: swallowed(torch.bfloat16, torch.optim.SGD, 1e-5, momentum=0.9),
    "fp16_adam": lambda: swallowed(torch.float16, torch.optim.Adam, 1e-7, eps=1e-4),
    "norms_in_bf16": norms_in_bf16,
    "never_cleared": lambda: never_cleared(m := mlp(), torch.optim.SGD(m.parameters(), lr=1e-3)),
    "never_cleared_adam": lambda: never_cleared(m := Tower(lambda h: h), torch.optim.AdamW(m.parameters())),
    "cleared_elsewhere": cleared_elsewhere,
    "scale_stays": lambda: scaler_skips(backoff_factor=0.999999999),
    "flushed_sgd": lambda: flushed(1e-5, torch.optim.SGD),
    "flushed_all": lambda: flushed(1e-9, torch.optim.SGD),
    "flushed_adam": lambda: flushed(2e-5, torch.optim.Adam),
}
if __name__ == "__main__":
    optimizers = []
    register_optimizer_step_post_hook(lambda it, *_: None if it in optimizers else optimizers.append(it))
    PLANTED[sys.argv[1]]()
    found = hashlib.sha256()
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            for p in group["params"]:
                for tensor in (p, *(value for value in optimizer.state.get(p, {}).values() if isinstance(value, torch.Tensor))):
                    found.update(tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    print(found.hexdigest())
