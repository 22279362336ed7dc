"""Every optimizer that PyTorch ships, with on_incident="skip": a bad step leaves no trace in weights and state.

usage: skip.py RUNS [DEVICE]; prints one line per optimizer that differs from a loop that did not call step() itself
"""
import copy
import sys

import torch
from torch import nn

import nanquest

RUNS, DEVICE = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "cpu"
STEPS, BAD = 5, 2


def plain(make, **options):
    return lambda parameters: make(parameters, lr=1e-2, **options)


ways = [{}, {"foreach": True}, {"foreach": False}]
capturable = [{"capturable": True}] if DEVICE != "cpu" else []
OPTIMIZERS = {}
for name, kinds in {"SGD": [*ways, {"fused": True}, {"momentum": 0.9}, {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
                            {"momentum": 0.9, "fused": True}],
                    "Adam": [*ways, {"fused": True}, {"amsgrad": True}, {"maximize": True}, *capturable],
                    "AdamW": [*ways, {"fused": True}, {"amsgrad": True, "fused": True}, *capturable],
                    "NAdam": [*ways, *capturable], "RAdam": [*ways, *capturable], "Adamax": [*ways, *capturable],
                    "Adadelta": [*ways, *capturable], "Adagrad": [*ways, {"lr_decay": 0.1}],
                    "RMSprop": [*ways, {"momentum": 0.5, "centered": True}, *capturable],
                    "Rprop": [*ways, *capturable], "ASGD": [*ways, *capturable], "Adafactor": [{}, {"foreach": True}],
                    "Muon": [{}], "LBFGS": [{"max_iter": 3}, {"max_iter": 3, "line_search_fn": "strong_wolfe"}],
                    "SparseAdam": [{}]}.items():
    for options in kinds:
        if hasattr(torch.optim, name):
            OPTIMIZERS[(name, *(f"{k}={v}" for k, v in options.items()))] = plain(getattr(torch.optim, name), **options)


class Net(nn.Module):
    def __init__(self, sparse):
        super().__init__()
        self.table = nn.Embedding(7, 4, sparse=sparse)
        self.out = None if sparse else nn.Linear(4, 3, bias=False)

    def forward(self, rows):
        found = self.table(rows)
        return found if self.out is None else self.out(found)


def train(name, make, leave_out, with_closure=False, scaler=None):
    """Weights and state after STEPS steps; step BAD is NaN, and is not made at all if `leave_out`."""
    torch.manual_seed(0)
    model = Net(sparse=name[0] == "SparseAdam").to(DEVICE)
    optimizer = make(model.parameters())
    for step in range(STEPS):
        rows = torch.randint(0, 7, (5,), device=DEVICE)

        def closure():
            optimizer.zero_grad()
            loss = model(rows).square().mean() * (float("nan") if step == BAD else 1.0)
            (loss if scaler is None else scaler.scale(loss)).backward()
            return loss

        if scaler is not None:
            closure()
            scaler.step(optimizer)
            scaler.update()
        elif with_closure or name[0] == "LBFGS":
            if not (leave_out and step == BAD):
                optimizer.step(closure)
        else:
            closure()
            if not (leave_out and step == BAD):
                optimizer.step()
    return copy.deepcopy((model.state_dict(), optimizer.state_dict()["state"]))


def same(a, b):
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and a.dtype == b.dtype and a.shape == b.shape and (
            a.cpu().contiguous().numpy().tobytes() == b.cpu().contiguous().numpy().tobytes())
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


checked = 0
for name, make in OPTIMIZERS.items():
    cases = [{}]
    if name[0] not in ("LBFGS", "SparseAdam"):
        cases.append({"with_closure": True})
        cases.append({"scaler": True})
    for case in cases:
        def run(leave_out):
            options = dict(case)
            if "scaler" in options:
                options["scaler"] = torch.amp.GradScaler(DEVICE, init_scale=8.0)
            return train(name, make, leave_out, **options)

        wanted = run(leave_out=True)
        assert nanquest.attach(run_dir=RUNS, level="guard", on_incident="skip", max_incidents=0)
        found = run(leave_out=False)
        incidents = nanquest.base.probe_state.probe.current.ops.incidents()
        nanquest.detach()
        checked += 1
        if not same(wanted, found):
            print("differs:", *name, *case)
        if not incidents:
            print("no incident:", *name, *case)
print("checked", checked)
