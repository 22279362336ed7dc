"""nn.TransformerEncoder under autocast; at step BAD the input is so large that fp16 overflows in the first projection.

usage: transformer.py DTYPE OPTIMIZER BAD SCALER ACCUMULATE [WEIGHTS_FILE]
"""
import sys

import torch
from torch import nn

dtype = {"fp32": None, "fp16": torch.float16, "bf16": torch.bfloat16}[sys.argv[1]]
fused, bad, scaled, accumulate = sys.argv[2] == "fused", int(sys.argv[3]), sys.argv[4] == "scaler", int(sys.argv[5])


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(32, 5)

    def forward(self, tokens):
        return self.head(self.encoder(tokens).mean(1))


torch.manual_seed(2)
model = Classifier()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=fused, foreach=not fused)
scaler = torch.amp.GradScaler("cpu", enabled=scaled, init_scale=1024.0)
criterion = nn.CrossEntropyLoss()
for step in range(6):
    optimizer.zero_grad(set_to_none=True)
    for micro in range(accumulate):
        tokens = torch.randn(4, 6, 32)
        if step == bad:
            tokens = (torch.rand(4, 6, 32) - 0.5) * 1.3e5
        labels = torch.randint(0, 5, (4,))
        with torch.autocast("cpu", dtype or torch.bfloat16, enabled=dtype is not None):
            loss = criterion(model(tokens=tokens), labels) / accumulate
        scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
if len(sys.argv) > 6:
    torch.save(model.state_dict(), sys.argv[6])
