"""One model of the matrix as a compiled region, with one thing that goes bad in step BAD: nothing here knows of the probe.

usage: compiled_program.py MODEL CASE [DEVICE [MODE]]      (MODE: of torch.compile)

Modules of the model add a little of something to their output that hangs on a number of theirs, the dial: the region is the
same in all cases, in which one dial alone is turned, or a weight spoiled.
"""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "matrix")]

import program  # noqa: E402, of the matrix: it keeps transformers quiet and off the network
import torch  # noqa: E402

import models  # noqa: E402

BAD, STEPS = 3, 4


def product(x, dial):
    """As wide as x, in fp16 whatever autocast wants."""
    width = x.shape[-1]
    with torch.autocast(x.device.type, enabled=False):
        return (x.reshape(-1, width).sigmoid().half() @ (dial * x.new_ones(width, width)).half()).float().reshape(x.shape)


# What is added, the dial in a healthy run, and in another one.
DIALS = {
    "log-of-negative": (lambda x, dial: torch.log(x.sigmoid() + dial), 0.5, -2.0),
    "log-of-zero": (lambda x, dial: torch.log(torch.relu(x) + dial), 1.0, 0.0),
    "sqrt-of-negative": (lambda x, dial: torch.sqrt(x.sigmoid() + dial), 1.0, -2.0),
    "exp-of-large": (lambda x, dial: torch.exp(x.sigmoid() * dial), 1.0, 1e4),
    "divided-by-zero": (lambda x, dial: torch.relu(x) / dial, 1.0, 0.0),
    "square-of-large": (lambda x, dial: torch.pow(x.sigmoid() * dial, 2), 1.0, 1e25),
    "product-in-fp16": (product, 0.1, 6e4),
    "nobody-to-attend": (lambda x, dial: torch.softmax(x.masked_fill(dial == 0, -torch.inf), -1), 1.0, 0.0),
    "root-of-zero": (lambda x, dial: torch.sqrt(torch.square(x.sigmoid() * dial)), 1.0, 0.0),
    "norm-of-zero": (lambda x, dial: x * torch.rsqrt(torch.square(x - x.detach()).mean(-1, keepdim=True) + dial), 1.0, 0.0),
}


def add_dial(module, name):
    change, good, _ = DIALS[name]
    buffer = name.replace("-", "_")
    module.register_buffer(buffer, torch.tensor(good))
    module.register_forward_hook(lambda m, inputs, x: x + 0.01 * change(x.float(), getattr(m, buffer)).to(x.dtype))


def places(model):
    """Modules for the dials, in their order: spread over the model; and those whose weights are spoiled."""
    found = [name for name, m in model.named_modules()
             if isinstance(m, torch.nn.Linear | torch.nn.Conv2d) or type(m).__name__ == "Conv1D"]
    inner = found[:-1]  # not the last: its output is the model's
    return [inner[i * len(inner) // len(DIALS)] for i in range(len(DIALS))], found


def main():
    name, case, *more = sys.argv[1:]
    device, mode = (more + ["cpu", "default"][len(more):])[:2]
    torch.set_num_threads(1)
    torch.manual_seed(7)
    task = models.build(name)
    model = task.model.train()
    where = dict(zip(DIALS, places(model)[0]))
    for dial, place in where.items():
        add_dial(model.get_submodule(place), dial)
    model.to(device)
    compiled = torch.compile(model, mode=mode)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    generator = torch.Generator().manual_seed(100)
    for step in range(STEPS):
        batch = program.moved(task.batch(generator), device)
        if step == BAD and case in DIALS:
            model.get_buffer(f"{where[case]}.{case.replace('-', '_')}").fill_(DIALS[case][2])
        elif step == BAD:
            model.get_parameter(case).detach().view(-1)[3] = torch.nan
        optimizer.zero_grad()
        with torch.autocast(device, torch.bfloat16, enabled=name == "llama"):
            loss = task.loss(compiled, batch)
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
