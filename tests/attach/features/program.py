"""Three steps of each feature named, one after the other: usage: program.py RESULT FEATURE...

RESULT gets one JSON line per feature: its name, the number of its middle step counted from the program's first one, the
bits of its losses and parameters, or why there is nothing.
"""
import hashlib
import json
import sys

import derivatives  # noqa: F401
import layouts  # noqa: F401
import operators  # noqa: F401
import programs  # noqa: F401
import tensors  # noqa: F401
import torch
from registry import FEATURES


def bits(values):
    digest = hashlib.sha256()
    for value in values:
        digest.update(value.detach().to_dense().reshape(-1).contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:16]


def run(name):
    number = 1
    torch.manual_seed(1)
    torch.set_num_threads(1)
    feature = FEATURES[name][0]()
    if feature is None:
        return {"skipped": "not built"}
    parameters, step, *rest = feature
    optimizer = rest[0] if rest else torch.optim.SGD(parameters, lr=0.01, momentum=0.9)
    losses = []
    for i in range(3):
        optimizer.zero_grad()
        loss = step(i)
        loss.backward()
        # Programs that follow each other in one process may share a step, so the number is asked for.
        if i == 1 and (probe := sys.modules.get("nanquest")):
            probe.record()
            number = probe.step()
        optimizer.step()
        losses.append(loss)
    optimizer.zero_grad(set_to_none=True)
    return {"step": number, "bits": bits([*losses, *parameters]),
            "finite": all(bool(torch.isfinite(v.detach().abs()).all()) for v in [*losses, *parameters])}


def warm_up():
    """At level trace the first three steps are looked at as by level watch."""
    w = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        w.square().sum().backward()
        optimizer.step()
    optimizer.zero_grad(set_to_none=True)


warm_up()
with open(sys.argv[1], "w", encoding="utf-8") as out:
    for name in sys.argv[2:]:
        print(json.dumps({"feature": name, **run(name)}), file=out, flush=True)
