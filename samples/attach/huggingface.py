"""A Hugging Face model in an ordinary training loop that fails. It does not use nanquest, and no fault is planted.

    pip install transformers
    nanquest run -- python samples/attach/huggingface.py
    nanquest-replay nanquest-run/incidents/step-*.r0.h5

A small GPT-2 with random weights learns the bytes of a text under fp16 autocast. Its learning rate suits SGD and is a hundred times
too high for AdamW: the loss falls for a while, until a value no longer fits into fp16. Nothing is downloaded.
"""
import pathlib
import sys

import torch
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
text = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2] / "LICENSE").read_bytes()
text = torch.tensor(list(text))
model = GPT2LMHeadModel(GPT2Config(vocab_size=256, n_positions=64, n_embd=64, n_layer=3, n_head=4,
                                   bos_token_id=None, eos_token_id=None))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
warm_up = torch.optim.lr_scheduler.LinearLR(optimizer, 0.05, 1.0, 20)
for step in range(400):
    starts = torch.randint(0, len(text) - 64, (8,))
    tokens = torch.stack([text[start:start + 64] for start in starts])
    with torch.autocast("cpu", torch.float16):
        loss = model(input_ids=tokens, labels=tokens).loss
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    warm_up.step()
    if step % 20 == 0:
        print(f"step {step:3d}  loss {loss.item():.4f}")
    if not torch.isfinite(loss):
        sys.exit(f"step {step}: the loss is {loss.item()}")
