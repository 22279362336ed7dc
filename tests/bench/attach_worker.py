"""Trains a model in blocks of steps, on demand: a line "N" on stdin makes N steps, the answer is their seconds.

usage: attach_worker.py gpt2|resnet50|tiny [LEVEL RUN_DIR]; with the probe if LEVEL is given, or, for the level "empty", with
PyTorch's empty observer. The first line on stdout says that it is ready.
"""
import sys
import time

import torch
from torch import nn


def gpt2():
    """GPT-2 of 124 M parameters, one sequence of 512 tokens."""
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    tokens = torch.randint(0, 50257, (1, 512))
    return optimizer, lambda: model(input_ids=tokens, labels=tokens).loss


def resnet50():
    """ResNet-50, eight pictures of 224 × 224."""
    from torchvision.models import resnet50 as make

    model = make()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    pictures, labels = torch.randn(8, 3, 224, 224), torch.randint(0, 1000, (8,))
    return optimizer, lambda: nn.functional.cross_entropy(model(pictures), labels)


def tiny():
    """So small that a step is nothing but the launching of ops."""
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.LayerNorm(32), nn.Linear(32, 4))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    x, y = torch.randn(8, 16), torch.randint(0, 4, (8,))
    return optimizer, lambda: nn.functional.cross_entropy(model(x), y)


def main():
    if sys.argv[2:3] == ["empty"]:
        torch.autograd._set_empty_test_observer(False, 1.0)
    elif len(sys.argv) > 2:
        import nanquest

        # Watched steps are the business of level watch: at level trace they would fall into some blocks only.
        if not nanquest.attach(level=sys.argv[2], run_dir=sys.argv[3], watch_first=0, watch_every=0):
            sys.exit(1)
    torch.manual_seed(0)
    optimizer, loss_of = {"gpt2": gpt2, "resnet50": resnet50, "tiny": tiny}[sys.argv[1]]()

    def steps(count):
        for _ in range(count):
            optimizer.zero_grad()
            loss_of().backward()
            optimizer.step()

    steps(4)  # the first makes gradients and moments, the next ones find memory for all of it
    print("ready", flush=True)
    for line in sys.stdin:
        begin = time.perf_counter()
        steps(int(line))
        print(time.perf_counter() - begin, flush=True)


main()
