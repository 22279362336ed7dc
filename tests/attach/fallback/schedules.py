"""Every scheduler that PyTorch ships, with and without a fallback in the middle: prints the name of each that was looked at, and
what is wrong with it.

usage: schedules.py RUNS
"""
import pathlib
import sys

import torch
from torch.optim import lr_scheduler as shipped
from torch.optim import swa_utils

import nanquest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import program  # noqa: E402

BACKOFF = 0.3
SCHEDULES = {
    "LambdaLR": lambda o: shipped.LambdaLR(o, lambda step: 1 / (1 + step)),
    "MultiplicativeLR": lambda o: shipped.MultiplicativeLR(o, lambda step: 0.9),
    "StepLR": lambda o: shipped.StepLR(o, 3, gamma=0.7),
    "MultiStepLR": lambda o: shipped.MultiStepLR(o, [4, 9, 15]),
    "ConstantLR": lambda o: shipped.ConstantLR(o, factor=0.25, total_iters=14),
    "LinearLR": lambda o: shipped.LinearLR(o, total_iters=16),
    "ExponentialLR": lambda o: shipped.ExponentialLR(o, 0.95),
    "SequentialLR": lambda o: shipped.SequentialLR(o, [shipped.ConstantLR(o, 0.1), shipped.ExponentialLR(o, 0.9)], [12]),
    "CosineAnnealingLR": lambda o: shipped.CosineAnnealingLR(o, 20),
    "ChainedScheduler": lambda o: shipped.ChainedScheduler([shipped.LinearLR(o), shipped.ExponentialLR(o, 0.9)]),
    "ReduceLROnPlateau": lambda o: shipped.ReduceLROnPlateau(o, patience=2),
    "CyclicLR": lambda o: shipped.CyclicLR(o, 1e-3, 2e-2, step_size_up=5, cycle_momentum=False),
    "CosineAnnealingWarmRestarts": lambda o: shipped.CosineAnnealingWarmRestarts(o, 6),
    "OneCycleLR": lambda o: shipped.OneCycleLR(o, 2e-2, total_steps=40),
    "PolynomialLR": lambda o: shipped.PolynomialLR(o, total_iters=30, power=2),
    "SWALR": lambda o: swa_utils.SWALR(o, swa_lr=1e-3, anneal_epochs=15),
}

for name in {*shipped.__all__, "SWALR"} - {"LRScheduler", *SCHEDULES}:
    print(f"{name}: nobody looks at it")
run = program.Run(format="bf16", at=8, steps=24)
for name, schedule in SCHEDULES.items():
    plain = program.train(run, schedule)
    assert nanquest.attach(run_dir=f"{sys.argv[1]}/{name}", level="guard", on_incident="fallback_fp32", lr_backoff=BACKOFF)
    fallen = program.train(run, schedule)
    nanquest.detach()
    wrong = [step for step, rate in plain["rates"].items() if fallen["rates"][step] != (rate * BACKOFF if step > 8 else rate)]
    if wrong or len(plain["rates"]) != 24:
        print(f"{name}: other rates in steps {wrong}")
    if plain["shown"] != fallen["shown"]:
        print(f"{name}: the program sees other rates")
    if not program.finite(fallen) or program.finite(plain):
        print(f"{name}: there was no fallback")
print("checked", len(SCHEDULES))
