"""Trains a model in blocks of steps, on demand: a line "N" on stdin makes N steps; the answer is their seconds, how many
of them passed inside the probe's own functions around forward, backward and update (0 for other levels than guard), and the
processor's seconds in all threads. "count N" makes N steps more and answers in JSON how often a device was waited for and given
something to do in them; "operations" makes one, of so many operations.

usage: attach_worker.py gpt2|gpt2-host|gpt2-compiled|gpt2-fsdp2|resnet50|tiny|mlp|episodes [LEVEL RUN_DIR [ON_INCIDENT [TAPE]]]; with the probe if
LEVEL is given: "guard", "watch" and "default" as they are without a setting, the last with a watched step in NANQUEST_BENCH_WATCH_EVERY if that is
set; "trace" is the default without its watched steps; "empty" PyTorch's empty observer. The first line on stdout says that it is ready. NANQUEST_BENCH_DEVICE names the device
(cpu); elsewhere the two large models train under bf16 autocast on batches that a GPU is used for, and gpt2-host on one of 16 tokens, which
leaves a step as long as the host needs for it. gpt2-fsdp2 is one of several processes, told which by the variables that torchrun sets.
"""
import itertools
import json
import os
import sys
import time

import torch
from torch import nn

from counted import events_of, operations_of

DEVICE = os.environ.get("NANQUEST_BENCH_DEVICE", "cpu")
ON_CPU = DEVICE == "cpu"


def in_bf16():
    """Autocast, but for a CPU."""
    return torch.autocast(DEVICE, torch.bfloat16, enabled=not ON_CPU)


def gpt2(compiled=False, shape=(1, 512) if ON_CPU else (8, 1024)):
    """GPT-2 of 124 M parameters, one sequence of 512 tokens; on a GPU eight of 1024. `compiled`: by torch.compile."""
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config()).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    tokens = torch.randint(0, 50257, shape, device=DEVICE)
    if compiled:
        model = torch.compile(model)

    def loss():
        with in_bf16():
            return model(input_ids=tokens, labels=tokens).loss
    return optimizer, loss


def gpt2_fsdp2():
    """The same with weights, gradients and moments spread over the processes by `fully_shard`, block by block; a sequence of 256 tokens each."""
    import torch.distributed as dist
    from torch.distributed.fsdp import fully_shard
    from transformers import GPT2Config, GPT2LMHeadModel

    if ON_CPU:
        torch.set_num_threads(max(1, os.cpu_count() // int(os.environ["WORLD_SIZE"])))
    dist.init_process_group("gloo" if ON_CPU else "nccl")
    model = GPT2LMHeadModel(GPT2Config()).to(DEVICE)
    for block in model.transformer.h:
        fully_shard(block)
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    tokens = torch.randint(0, 50257, (1, 256) if ON_CPU else (8, 1024), device=DEVICE)

    def loss():
        with in_bf16():
            return model(input_ids=tokens, labels=tokens).loss
    return optimizer, loss


def resnet50():
    """ResNet-50, eight pictures of 224 × 224; on a GPU 64."""
    from torchvision.models import resnet50 as make

    model, count = make().to(DEVICE), 8 if ON_CPU else 64
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    pictures, labels = torch.randn(count, 3, 224, 224, device=DEVICE), torch.randint(0, 1000, (count,), device=DEVICE)

    def loss():
        with in_bf16():
            return nn.functional.cross_entropy(model(pictures), labels)
    return optimizer, loss


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        seen = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class Transformer(nn.Module):
    def __init__(self, width=64, heads=4, depth=2, length=64):
        super().__init__()
        self.tokens, self.places = nn.Embedding(256, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 256)

    def forward(self, tokens):
        return self.head(self.norm(self.blocks(self.tokens(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device)))))


def tiny():
    """A transformer so small that launching its ops is most of a step: 1600 ops, nested ones included, in 4.4 ms."""
    model = Transformer().to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    tokens, next_ones = torch.randint(0, 256, (4, 64), device=DEVICE), torch.randint(0, 256, (4 * 64,), device=DEVICE)
    return optimizer, lambda: nn.functional.cross_entropy(model(tokens).flatten(0, 1), next_ones)


def mlp():
    """Nothing but the launching of ops, as fast as PyTorch can: six layers of at most 32 numbers on one thread."""
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.LayerNorm(32), nn.Linear(32, 4)).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    x, y = torch.randn(8, 16, device=DEVICE), torch.randint(0, 4, (8,), device=DEVICE)
    return optimizer, lambda: nn.functional.cross_entropy(model(x), y)


def episodes():
    """Reinforcement learning as in PyTorch's own example (reinforce.py): 30 to 66 passes with one observation each, what they drew decides
    the next observation, and one update an episode. On one thread; the environment is a cart that is pushed left or right."""
    torch.set_num_threads(1)
    policy = nn.Sequential(nn.Linear(4, 128), nn.Dropout(0.6), nn.ReLU(), nn.Linear(128, 2), nn.Softmax(dim=1)).to(DEVICE)
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    lengths = itertools.cycle(range(30, 70, 4))

    def loss():
        place, speed, log_probabilities, rewards, returns = 0.1, 0.0, [], [], []
        for _ in range(next(lengths)):
            seen = torch.tensor([place, speed, place * speed, 1.0], device=DEVICE).unsqueeze(0)
            drawn = torch.distributions.Categorical(policy(seen))
            action = drawn.sample()
            log_probabilities.append(drawn.log_prob(action))
            speed += 0.1 if action.item() else -0.1
            place += 0.1 * speed
            rewards.append(-abs(place))
        total = 0.0
        for reward in rewards[::-1]:
            total = reward + 0.99 * total
            returns.insert(0, total)
        returns = torch.tensor(returns, device=DEVICE)
        returns = (returns - returns.mean()) / (returns.std() + 1e-6)
        return torch.cat([-p * r for p, r in zip(log_probabilities, returns)]).sum()
    return optimizer, loss


class Inside:
    """The time spent in functions, the probe's, that Python calls."""

    def __init__(self):
        self.seconds = 0.0

    def put(self, place, name):
        own = getattr(place, name)

        def timed(*args, **kwargs):
            begin = time.perf_counter()
            try:
                return own(*args, **kwargs)
            finally:
                self.seconds += time.perf_counter() - begin
        setattr(place, name, timed)


MODELS = {"gpt2": gpt2, "gpt2-host": lambda: gpt2(shape=(1, 16)), "gpt2-compiled": lambda: gpt2(compiled=True), "gpt2-fsdp2": gpt2_fsdp2,
          "resnet50": resnet50, "tiny": tiny, "mlp": mlp, "episodes": episodes}


def attach(level, run_dir, on_incident="continue", tape="0"):
    """The probe at that level, or the least that a trace can cost."""
    if level == "empty":
        return torch.autograd._set_empty_test_observer(False, 1.0)
    import nanquest

    settings = {"level": "trace" if level == "default" else level, "run_dir": run_dir, "on_incident": on_incident, "tape": int(tape)}
    if level == "trace":  # watched steps would fall into some blocks only: "default" shows their cost
        settings.update(watch_first=0, watch_every=0)
    every = os.environ.get("NANQUEST_BENCH_WATCH_EVERY")
    if level == "default" and every:
        settings["watch_every"] = int(every)
    if not nanquest.attach(**settings):
        sys.exit(1)


def main():
    if DEVICE == "nqdev":
        import nqdev  # noqa: F401 (it registers the device)
    inside = Inside()
    if len(sys.argv) > 2:
        attach(*sys.argv[2:])
        if sys.argv[2] == "guard":
            from nanquest.hear import backward_passes, module_calls
            from nanquest.steps import updates
            for place, name in ((module_calls, "_begin"), (backward_passes, "_begins"), (backward_passes, "_ends"), (backward_passes, "_cleared"),
                                (updates.Updates, "before"), (updates.Updates, "after")):
                inside.put(place, name)
    torch.manual_seed(0)
    optimizer, loss_of = MODELS[sys.argv[1]]()

    def steps(count):
        for _ in range(count):
            optimizer.zero_grad()
            loss_of().backward()
            optimizer.step()
        if not ON_CPU:
            torch.get_device_module(DEVICE).synchronize()

    steps(4)  # the first makes gradients and moments, the next ones find memory for all of it
    print("ready", flush=True)
    for line in sys.stdin:
        what, *count = line.split()
        if what == "count":
            print(json.dumps(events_of(DEVICE, lambda: steps(int(count[0])))), flush=True)
        elif what == "operations":
            print(operations_of(lambda: steps(1)), flush=True)
        else:
            inside.seconds, begin, processor = 0.0, time.perf_counter(), time.process_time()
            steps(int(what))
            print(time.perf_counter() - begin, inside.seconds, time.process_time() - processor, flush=True)


if __name__ == "__main__":
    main()
