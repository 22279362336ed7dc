"""The model and the step of throughput_worker.cpp as people write them with PyTorch: a line "N" on stdin makes N steps; the
answer is their seconds, and how many of them the processor worked on it.

usage: throughput_worker.py 4x128|gpt2 TEXT THREADS. The first line on stdout says that it is ready.
"""
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attention(self, x):
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in self.qkv(x).split(width, dim=2))
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(seen.transpose(1, 2).reshape(batch, length, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self, depth, width, heads, context, vocabulary):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(width)
        for name, p in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(p)
            elif "norm" not in name:
                nn.init.normal_(p, 0, 0.02 / (2 * depth) ** 0.5 if name.endswith(("out.weight", "down.weight")) else 0.02)

    def forward(self, tokens):
        x = self.blocks(self.tokens(tokens) + self.places(torch.arange(tokens.shape[1])))
        return F.linear(self.norm(x), self.tokens.weight)


def main():
    name, text, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
    torch.set_num_threads(threads)
    torch.manual_seed(42)
    if name == "gpt2":
        model, batch, length = Gpt(12, 768, 12, 1024, 50257), 1, 512
    else:
        model, batch, length = Gpt(4, 128, 4, 128, 256), 8, 128
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0, fused=True)
    with open(text, "rb") as file:
        data = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8)

    def steps(count):
        for _ in range(count):
            at = torch.randint(len(data) - length - 1, (batch,)).tolist()
            windows = torch.stack([data[i:i + length + 1] for i in at]).long()
            optimizer.zero_grad()
            logits = model(windows[:, :-1])
            out = F.cross_entropy(logits.view(-1, logits.shape[-1]), windows[:, 1:].reshape(-1))
            out.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            out.item()  # as every program does that logs it

    steps(4)  # the first makes gradients and moments, the next ones find memory for all of it
    print("ready", flush=True)
    for line in sys.stdin:
        begin, worked = time.perf_counter(), time.process_time()
        steps(int(line))
        print(time.perf_counter() - begin, time.process_time() - worked, flush=True)


main()
