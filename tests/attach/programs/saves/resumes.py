"""A training that is saved after 20 steps, and one that goes on from there, in which something is not as it was saved.

usage: resumes.py save | resumes.py CASE (of WRONG or HEALTHY below)
"""
import copy
import os
import sys

from safetensors.torch import load_file, save_file

import torch
import torch.distributed.checkpoint as dcp
from torch import nn

torch.manual_seed(1)


def parts(dtype=torch.float32, kind=torch.optim.AdamW, lr=1e-2):
    model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Linear(16, 1)).to(dtype)
    model.register_buffer("unset", torch.full((3,), float("nan")))
    model.register_buffer("mask", torch.full((4, 4), float("-inf")).triu(1))
    model.transitions = nn.Parameter(torch.full((4,), float("-inf"), dtype=dtype))
    return model, kind(model.parameters(), lr=lr)


def warm_up(optimizer):
    return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 16))


def train(model, optimizer, scheduler=None, scaler=None, steps=4, each=lambda step: None):
    dtype = model[0].weight.dtype
    for step in range(steps):
        each(step)
        x = torch.randn(16, 8, dtype=dtype)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
        if scaler is None:
            loss.backward()
            optimizer.step()
        else:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        if scheduler is not None:
            scheduler.step()


def save():
    os.makedirs("out", exist_ok=True)
    model, optimizer = parts()
    scheduler, scaler = warm_up(optimizer), torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=10)
    train(model, optimizer, scheduler, scaler, steps=20)
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict(), "scaler": scaler.state_dict()}
    torch.save(state, "out/all.pt")
    save_file({k: v for k, v in state["model"].items()}, "out/model.safetensors")
    dcp.save({"model": state["model"]}, checkpoint_id="out/distributed")
    bad = {name: copy.deepcopy(state) for name in ("bad", "moment", "scale", "zero", "half", "buffer")}
    bad["bad"]["model"]["0.weight"][3, 4] = float("nan")
    bad["bad"]["model"]["2.weight"][0, 2] = float("inf")
    bad["buffer"]["model"]["1.running_var"][2] = float("nan")
    bad["moment"]["optimizer"]["state"][1]["exp_avg_sq"][3, 4] = float("inf")
    bad["scale"]["scaler"]["scale"] = float("nan")
    for name, change in (("zero", torch.zeros_like), ("half", torch.Tensor.half)):
        for entry in bad[name]["optimizer"]["state"].values():
            entry["exp_avg"], entry["exp_avg_sq"] = change(entry["exp_avg"]), change(entry["exp_avg_sq"])
    for name, it in bad.items():
        torch.save(it, f"out/{name}.pt")
    save_file(bad["bad"]["model"], "out/bad.safetensors")
    dcp.save({"model": bad["bad"]["model"]}, checkpoint_id="out/bad-distributed")
    sgd = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    train(model, sgd)
    torch.save({"model": model.state_dict(), "optimizer": sgd.state_dict()}, "out/sgd.pt")
    narrow, optimizer = parts(torch.bfloat16)
    train(narrow, optimizer)
    torch.save({"model": narrow.state_dict(), "optimizer": optimizer.state_dict()}, "out/bf16.pt")


def resume(file="all", model=True, optimizer=True, scheduler=True, scaler=True, late=False, dtype=torch.float32, then=lambda *_: None, lr=1e-2):
    saved = torch.load(f"out/{file}.pt")
    own, own_optimizer = parts(dtype, lr=lr)
    own_scheduler = warm_up(own_optimizer) if not late and "scheduler" in saved else None
    own_scaler = torch.amp.GradScaler("cpu") if file != "bf16" else None
    if model:
        own.load_state_dict(saved["model"])
    if optimizer:
        own_optimizer.load_state_dict(saved["optimizer"])
    if late:
        for group in own_optimizer.param_groups:
            del group["initial_lr"]
        own_scheduler = warm_up(own_optimizer)
    if scheduler and own_scheduler is not None:
        own_scheduler.load_state_dict(saved["scheduler"])
    if scaler and "scaler" in saved:
        own_scaler.load_state_dict(saved["scaler"])
    then(own, own_optimizer)
    train(own, own_optimizer, own_scheduler, own_scaler)


def weights_only(load, place):
    model, optimizer = parts()
    load(model, place)
    train(model, optimizer)


def from_distributed(model, place):
    dcp.load({"model": model.state_dict()}, checkpoint_id=place)


def fill_steps(value):
    def then(_, optimizer):
        for entry in optimizer.state.values():
            entry["step"] = value(entry["step"])

    return then


def set_rate(rate):
    return lambda _, optimizer: optimizer.param_groups[0].update(lr=rate)


def rate_by_hand():
    """The rate falls tenfold at this epoch, as the program itself has it."""
    saved = torch.load("out/sgd.pt")
    model, optimizer = parts(kind=torch.optim.SGD, lr=0.1)
    optimizer.param_groups[0]["momentum"] = 0.9
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    train(model, optimizer, each=lambda _: optimizer.param_groups[0].update(lr=0.01))


def loaded_later():
    """A best model is loaded in mid-run: that is the program's own business."""
    model, optimizer = parts()
    train(model, optimizer, each=lambda step: step == 2 and optimizer.load_state_dict(torch.load("out/zero.pt")["optimizer"]))


def target_network():
    saved = torch.load("out/all.pt")
    model, optimizer = parts()
    target, _ = parts()
    model.load_state_dict(saved["model"])
    train(model, optimizer, each=lambda _: target.load_state_dict(model.state_dict()))


def only_looked_at():
    """A bad file is read, and something else is trained."""
    torch.load("out/bad.pt")
    other, _ = parts()
    other.load_state_dict(torch.load("out/bad.pt")["model"])
    train(*parts())


WRONG = {
    "weights": lambda: resume("bad", optimizer=False, scheduler=False, scaler=False),
    "safetensors": lambda: weights_only(lambda model, place: model.load_state_dict(load_file(place)), "out/bad.safetensors"),
    "distributed": lambda: weights_only(from_distributed, "out/bad-distributed"),
    "buffer": lambda: resume("buffer"),
    "moments": lambda: resume("moment"),
    "zero": lambda: resume("zero"),
    "half": lambda: resume("half"),
    "narrowed": lambda: resume(dtype=torch.bfloat16),
    "rate_kept": lambda: resume(then=set_rate(1e-4), lr=1e-4 * 16),
    "scheduler_made_later": lambda: resume(late=True, scheduler=False),
    "scheduler_not_loaded": lambda: resume(scheduler=False),
    "scale": lambda: resume("scale"),
    "scaler_not_loaded": lambda: resume(scaler=False),
    "steps": lambda: resume(then=fill_steps(lambda step: step * 0)),
    "narrow_steps": lambda: resume(then=fill_steps(lambda step: (step + 301).bfloat16())),
}
HEALTHY = {
    "all": resume,
    "fine_tune": lambda: resume(optimizer=False, scheduler=False, scaler=False),
    "other_rate": lambda: resume(optimizer=False, scheduler=False, scaler=False, lr=1e-5),
    "bf16": lambda: resume("bf16", dtype=torch.bfloat16),
    "rate_by_hand": rate_by_hand,
    "loaded_later": loaded_later,
    "target_network": target_network,
    "only_looked_at": only_looked_at,
    "clean_safetensors": lambda: weights_only(lambda model, place: model.load_state_dict(load_file(place)), "out/model.safetensors"),
    "clean_distributed": lambda: weights_only(from_distributed, "out/distributed"),
}
{"save": save, **WRONG, **HEALTHY}[sys.argv[1]]()
