"""An ordinary PyTorch training script that fails. It does not use nanquest.

    nanquest run --level watch -- python samples/attach/train.py
    nanquest-replay nanquest-run/incidents/step-00000040.r0.h5

A small classifier trains under fp16 autocast; step 40 gets a batch with unscaled features.
"""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.LayerNorm(64), nn.Dropout(0.1), nn.Linear(64, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
teacher = torch.randn(32, 4)
for step in range(60):
    features = torch.randn(64, 32)
    labels = (features @ teacher).argmax(1)
    if step == 40:
        features = features.clamp(-1, 1) * 65000
    with torch.autocast("cpu", torch.float16):
        loss = nn.functional.cross_entropy(model(features), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(f"step {step:3d}  loss {loss.item():.4f}")
