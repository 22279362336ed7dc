"""Optimizers of many kinds behind one name, with the epsilon that their format bears."""

import torch


class HandAdam(torch.optim.Optimizer):
    """Adam as people write it by hand: a loop over parameters, in the parameters' own format."""

    def __init__(self, parameters, lr, eps=1e-8, betas=(0.9, 0.999)):
        super().__init__(parameters, {"lr": lr, "eps": eps, "betas": betas})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            one, two = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["step"], state["m"], state["v"] = 0, torch.zeros_like(p), torch.zeros_like(p)
                state["step"] += 1
                state["m"].mul_(one).add_(p.grad, alpha=1 - one)
                state["v"].mul_(two).add_(p.grad * p.grad, alpha=1 - two)
                size = group["lr"] * (1 - two ** state["step"]) ** 0.5 / (1 - one ** state["step"])
                p.sub_(size * state["m"] / (state["v"].sqrt() + group["eps"]))


def make_optimizer(program, parameters):
    small = program.precision == "fp16"
    eps = 1e-3 if small else 1e-8
    kinds = {
        "sgd": lambda: torch.optim.SGD(parameters, lr=10 * program.lr, momentum=0.9),
        "adam": lambda: torch.optim.Adam(parameters, lr=program.lr, eps=eps),
        "adamw_foreach": lambda: torch.optim.AdamW(parameters, lr=program.lr, eps=eps, foreach=True),
        "adamw_fused": lambda: torch.optim.AdamW(parameters, lr=program.lr, eps=eps, fused=True),
        "adamw_single": lambda: torch.optim.AdamW(parameters, lr=program.lr, eps=eps, foreach=False),
        "adafactor": lambda: torch.optim.Adafactor(parameters, lr=program.lr),
        "hand": lambda: HandAdam(parameters, lr=program.lr, eps=eps),
    }
    return kinds[program.optimizer]()
