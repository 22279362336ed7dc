"""The models of the matrix, by name. Each file of this folder holds one family and gives `build(name)`.

A model is small, has random weights, and never asks the network for anything.
"""

import dataclasses
import importlib
from typing import Callable

import torch

FAMILIES = {
    "decoders": ("gpt2", "llama", "mistral", "qwen2", "qwen3", "gemma", "phi", "mixtral"),
    "encoders": ("bert", "vit"),
    "translators": ("t5", "whisper"),
    "multimodal": ("clip", "llava"),
    "statespace": ("mamba",),
    "vision": ("resnet", "convnext"),
    "unet": ("unet",),
    "recurrent": ("lstm", "gru"),
    "graph": ("gcn",),
    "speech": ("ctc",),
    "sharing": ("shared",),
    "stateful": ("buffers",),
}
PACKAGES = dict.fromkeys(("decoders", "encoders", "translators", "multimodal", "statespace"), ("transformers",))
PACKAGES["vision"] = ("torchvision",)
NAMES = tuple(name for names in FAMILIES.values() for name in names)


@dataclasses.dataclass
class Task:
    """A model and what it is trained on."""

    model: torch.nn.Module
    batch: Callable[[torch.Generator], dict]          # random inputs of one micro-batch, by name
    loss: Callable[[torch.nn.Module, dict], torch.Tensor]


def packages(name: str) -> tuple:
    """What must be installed for this model beside torch."""
    return next(PACKAGES.get(family, ()) for family, names in FAMILIES.items() if name in names)


def build(name: str) -> Task:
    for family, names in FAMILIES.items():
        if name in names:
            return importlib.import_module(f"{__name__}.{family}").build(name)
    raise SystemExit(f"no model is called {name}; there are {', '.join(NAMES)}")
