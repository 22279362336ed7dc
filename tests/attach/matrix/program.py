"""Trains models of the matrix for a few steps each. It knows nothing of nanquest.

usage: program.py RESULT_FILE STEPS MODEL/OPTIMIZER/PRECISION/HABITS…

Writes one line of JSON for each: the losses, and a hash of all weights and buffers after every step; or
the error with which it ended.
"""

import hashlib
import json
import os
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
        state.update(value.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return state.hexdigest()[:32]


def train(model_name, optimizer_name, precision, habit_names, steps):
    torch.manual_seed(7)
    numpy.random.seed(7)
    task = models.build(model_name)
    task.model.train()
    habits = habits_.Habits(habit_names.split("+"), task)
    optimizer = optimizers.OPTIMIZERS[optimizer_name](habits.groups())
    scheduler = habits.scheduler(optimizer)
    dtype = PRECISIONS[precision]
    scaler = torch.amp.GradScaler("cpu", enabled=precision == "fp16", init_scale=256.0)
    batches = habits.batches(seed=100)
    losses, weights = [], []
    for _ in range(steps):
        optimizer.zero_grad(set_to_none="zero-in-place" not in habit_names)
        for _ in range(habits.micro_batches):
            batch = habits.before_forward(next(batches))
            with torch.autocast("cpu", dtype or torch.bfloat16, enabled=dtype is not None), habits.around_forward():
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
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        for spec in sys.argv[3:]:
            try:
                result = train(*spec.split("/"), steps=int(sys.argv[2]))
            except RuntimeError as error:
                result = {"error": " ".join(str(error).split())}
            print(json.dumps({"spec": spec, **result}), file=file, flush=True)


if __name__ == "__main__":
    main()
