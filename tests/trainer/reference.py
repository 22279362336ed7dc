"""reference.py PATH…: PyTorch's results for the same weights and the same bytes.

PATH.in.safetensors: metadata "config" (JSON), tensors "model.NAME" and "windows" int64 [steps, batch, context + 1].
PATH.out.safetensors: "logits" and "loss" of the first window, "grad.NAME" of it, and "losses" of one AdamW step on each.
"""
import json
import sys

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from reference_gpt import Gpt, loss_of

torch.set_num_threads(1)


def reference(source, target):
    with safe_open(source, "pt") as f:
        config = json.loads(f.metadata()["config"])
        tensors = {name: f.get_tensor(name) for name in f.keys()}
    model = Gpt(config)
    weights = {k[len("model."):]: v for k, v in tensors.items() if k.startswith("model.")}
    model.load_state_dict(weights, strict=True)

    out = {}
    groups = [{"params": [p for p in model.parameters() if p.dim() >= 2], "weight_decay": 0.1},
              {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=config["lr"], betas=(0.9, 0.99), eps=1e-8)
    losses = []
    for step, window in enumerate(tensors["windows"]):
        optimizer.zero_grad()
        logits = model(window[:, :-1])
        loss = loss_of(logits, window[:, 1:])
        loss.backward()
        if step == 0:
            out["logits"], out["loss"] = logits.detach().clone(), loss.detach().clone()
            out.update({"grad." + n: p.grad.clone() for n, p in model.named_parameters()})
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.detach())
    out["losses"] = torch.stack(losses)
    save_file({k: v.contiguous() for k, v in out.items()}, target)


for path in sys.argv[1:]:
    reference(path + ".in.safetensors", path + ".out.safetensors")
