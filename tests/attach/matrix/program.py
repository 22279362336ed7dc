"""Trains models of the matrix for a few steps each. It knows nothing of nanquest.

usage: program.py RESULT_FILE STEPS DEVICE MODEL/OPTIMIZER/PRECISION/HABITS…      (DEVICE: cpu, nqdev, cuda, …)

Writes one line of JSON for each: the losses, and a hash of all weights and buffers after every step; or
the error with which it ended.
"""

import hashlib
import json
import os
import pathlib
import sys
import warnings

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", TRANSFORMERS_VERBOSITY="error")
warnings.filterwarnings("ignore")

import numpy  # noqa: E402
import torch  # noqa: E402

import habits as habits_  # noqa: E402
import models  # noqa: E402
import optimizers  # noqa: E402

PRECISIONS = {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}


def fingerprint(model):
    state = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        state.update(name.encode())
        state.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return state.hexdigest()[:32]


def moved(batch, device):
    """The batch on the device, but for the lengths, which PyTorch wants on the host."""
    return {k: v.to(device) if isinstance(v, torch.Tensor) and k != "lengths" else v for k, v in batch.items()}


def train(model_name, optimizer_name, precision, habit_names, steps, device):
    torch.manual_seed(7)
    numpy.random.seed(7)
    task = models.build(model_name)
    task.model.to(device).train()
    habits = habits_.Habits(habit_names.split("+"), task)
    optimizer = optimizers.OPTIMIZERS[optimizer_name](habits.groups())
    scheduler = habits.scheduler(optimizer)
    dtype = PRECISIONS[precision]
    scaler = torch.amp.GradScaler(device, enabled=precision == "fp16", init_scale=256.0)
    batches = habits.batches(seed=100)
    losses, weights = [], []
    for _ in range(steps):
        optimizer.zero_grad(set_to_none="zero-in-place" not in habit_names)
        for _ in range(habits.micro_batches):
            batch = habits.before_forward(moved(next(batches), device))
            with torch.autocast(device, dtype or torch.bfloat16, enabled=dtype is not None), habits.around_forward():
                loss = habits.of_loss(task.loss(task.model, batch))
            scaler.scale(loss).backward()
        if {"clip", "clip-value"} & habits.names:
            scaler.unscale_(optimizer)
        habits.before_update()
        scaler.step(optimizer)
        scaler.update()
        if scheduler:
            scheduler.step()
        habits.after_update(batch)
        losses.append(float(loss.detach()))
        weights.append(fingerprint(task.model))
    return {"losses": losses, "weights": weights}


def main():
    torch.set_num_threads(1)
    result_file, steps, device, *specs = sys.argv[1:]
    if device == "cuda":  # some of its kernels give other bits each time, and there would be nothing to compare with
        torch.use_deterministic_algorithms(True, warn_only=True)
    if device == "nqdev":  # the accelerator made for tests; its streams run in an order that this seed tells
        sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "device"))
        import nqdev
        nqdev.set_seed(1)
    with open(result_file, "w", encoding="utf-8") as file:
        for spec in specs:
            try:
                result = train(*spec.split("/"), int(steps), device)
            except RuntimeError as error:
                result = {"error": " ".join(str(error).split())}
                if device == "nqdev":  # else every later call fails, as after a kernel's error on a GPU
                    nqdev.heal()
            print(json.dumps({"spec": spec, **result}), file=file, flush=True)


if __name__ == "__main__":
    main()
