"""The optimizers of the matrix, by name, as programs make them."""

import torch

OPTIMIZERS = {
    "adamw-foreach": lambda p: torch.optim.AdamW(p, lr=1e-3, foreach=True),
    "adamw-single": lambda p: torch.optim.AdamW(p, lr=1e-3, foreach=False),
    "adamw-fused": lambda p: torch.optim.AdamW(p, lr=1e-3, fused=True),
    "sgd": lambda p: torch.optim.SGD(p, lr=1e-2, momentum=0.9, weight_decay=1e-4),
    "adafactor": lambda p: torch.optim.Adafactor(p, lr=1e-2),
}
NAMES = tuple(OPTIMIZERS)
