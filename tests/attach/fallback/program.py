"""A regression on noise, in any format, with one planted fault; the program knows nothing of the probe.

`train` is one run. As a program: program.py OUT.pt KEY=VALUE…, the keys being those of Run.
"""
import dataclasses
import sys

import torch
from torch import nn

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=2e-2, momentum=0.9),
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-2, eps=1e-4),  # fp16 has no 1e-8
    "adamw-fused": lambda p: torch.optim.AdamW(p, lr=1e-2, fused=True),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=2e-3),
    "adafactor": lambda p: torch.optim.Adafactor(p, lr=0.1),
    "nadam": lambda p: torch.optim.NAdam(p, lr=1e-2, eps=1e-4),
    "adamax": lambda p: torch.optim.Adamax(p, lr=2e-2, eps=1e-4),
    "asgd": lambda p: torch.optim.ASGD(p, lr=0.2),
    "rprop": lambda p: torch.optim.Rprop(p, lr=1e-3),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.3, eps=1e-4),
    "radam": lambda p: torch.optim.RAdam(p, lr=5e-2, eps=1e-4),
}


@dataclasses.dataclass
class Run:
    format: str = "fp32"       # fp32; bf16, fp16: autocast; pure-bf16, pure-fp16: weights
    optimizer: str = "adamw"
    where: str = "input"       # what is bad: see _batch, _spoil and train
    at: int = 12
    count: int = 1             # so many steps, -1: all that follow
    steps: int = 40
    stateful: bool = False     # batch norm and dropout
    absent: bool = False       # the bad batches are drawn, and that is all
    by_hand: bool = False      # absent, and after it the program goes to fp32 itself, with half the rate
    accumulate: int = 1
    own_data: bool = False     # batches come from a generator of their own
    prefetch: bool = False     # the next batch is drawn between a forward and its backward pass

    def is_bad(self, step):
        return step >= self.at and (self.count < 0 or step < self.at + self.count)


def _model(run):
    torch.manual_seed(1)
    extra = [nn.BatchNorm1d(32), nn.Dropout(0.1)] if run.stateful else []
    model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), *extra, nn.Linear(32, 1))
    model.register_buffer("norms", torch.zeros(()))
    return model.to(DTYPES[run.format[5:]]) if run.format.startswith("pure-") else model


def _batch(run, bad, generator):
    x = torch.randn(16, 8, generator=generator)
    y = x.sum(1, keepdim=True)
    if bad and run.where in ("input", "inf"):
        x[2, 3] = float("nan") if run.where == "input" else float("inf")
    if bad and run.where == "target":
        y[5] = float("nan")
    return x, y


def _loss(run, model, x, y, bad):
    out = model(x)
    if bad and run.where == "root":
        return nn.functional.mse_loss(out, y) + (out * 0).square().sum().sqrt()  # finite, but its gradient is not
    if bad and run.where == "overflow":  # the squares leave fp16
        return ((out - y.to(out.dtype)) * 2000).square().mean() / 4e6
    loss = nn.functional.mse_loss(out, y.to(out.dtype))
    return loss * float("nan") if bad and run.where == "loss" else loss


def _spoil(run, model, optimizer):
    """After the backward pass."""
    if run.where == "gradient":
        model[0].weight.grad[0, 3] = float("inf")
    elif run.where == "buffer":
        model.norms.fill_(float("inf"))
    elif run.where == "moment":
        next(value for value in optimizer.state[model[0].weight].values() if value.dim() == 2)[1, 0] = float("nan")
    elif run.where == "weight":
        model[0].weight.data[1, 1] = float("nan")
    elif run.where == "rate":
        optimizer.param_groups[0]["lr"] = float("inf")


def _held_out(model):
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(256, 8, generator=generator)
    weight = next(model.parameters())
    model.eval()
    with torch.no_grad():
        loss = (model(x.to(weight.dtype)).float() - x.sum(1, keepdim=True)).square().mean().item()
    model.train()
    return loss


def _to_fp32(model, optimizer):
    model.float()
    for state in optimizer.state.values():
        for key, value in state.items():
            state[key] = value.float()


def train(run, schedule=None, found=None):
    """What the run leaves: weights, states, rates used, losses. `found` gets it also if the run is ended in the middle."""
    found = {} if found is None else found
    model = _model(run)
    pure, dtype = run.format.startswith("pure-"), DTYPES[run.format.split("-")[-1]]
    optimizer = OPTIMIZERS[run.optimizer](model.parameters())
    scheduler = schedule(optimizer) if schedule else torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, run.steps + 10)
    scaler = torch.amp.GradScaler("cpu", enabled=run.format == "fp16", init_scale=2.0**10)
    found.update(rates={}, shown=[], losses=[], model=model, optimizer=optimizer, scaler=scaler)
    data = torch.Generator().manual_seed(2) if run.own_data else None
    low, factor, step, ahead = not pure and run.format != "fp32", 1.0, 0, None
    optimizer.register_step_pre_hook(lambda o, a, k: found["rates"].update({step: float(o.param_groups[0]["lr"])}))
    for step in range(run.steps):
        bad = run.is_bad(step)
        if step == run.at:
            found["held_out_before"] = _held_out(model)
        optimizer.zero_grad()
        for part in range(run.accumulate):
            x, y = ahead if ahead is not None else _batch(run, bad and not part, data)
            x = x.to(dtype) if pure else x
            x = x.float() if run.by_hand and step > run.at else x
            if bad and run.absent:
                ahead = _batch(run, run.is_bad(step + 1), data) if run.prefetch else None
                continue
            with torch.autocast("cpu", dtype, enabled=low):
                loss = _loss(run, model, x, y, bad and not part)
            ahead = _batch(run, run.is_bad(step + 1), data) if run.prefetch else None
            scaler.scale(loss / run.accumulate).backward()
            found["losses"].append(loss.item())
        if not (bad and run.absent):
            if bad:
                _spoil(run, model, optimizer)
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 10.0)
            own = optimizer.param_groups[0]["lr"]
            optimizer.param_groups[0]["lr"] = own * factor
            scaler.step(optimizer)
            optimizer.param_groups[0]["lr"] = 1e-2 if run.where == "rate" else own
            scaler.update()
        elif run.by_hand and step == run.at:
            low, factor, scaler = False, 0.5, torch.amp.GradScaler("cpu", enabled=False)
            _to_fp32(model, optimizer)
        scheduler.step(*([1.0] if isinstance(scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau) else []))
        found["shown"].append(float(optimizer.param_groups[0]["lr"]))
    found["held_out"] = _held_out(model)
    return found


def finite(found):
    return all(bool(torch.isfinite(value).all()) for value in found["model"].state_dict().values())


def parsed(words):
    kinds = {field.name: field.type for field in dataclasses.fields(Run)}
    values = dict(word.split("=") for word in words)
    return Run(**{key: text == "True" if kinds[key] is bool else kinds[key](text) for key, text in values.items()})


if __name__ == "__main__":
    found = {}
    try:
        train(parsed(sys.argv[2:]), found=found)
    finally:
        torch.save({"model": found["model"].state_dict(), "optimizer": found["optimizer"].state_dict()["state"],
                    "scaler": found["scaler"].state_dict(), "random": torch.get_rng_state(), "finite": finite(found),
                    **{key: found.get(key) for key in ("rates", "shown", "losses", "held_out", "held_out_before")}}, sys.argv[1])
