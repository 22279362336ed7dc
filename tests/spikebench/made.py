"""A small training run with one spike whose cause is known: MODEL CAUSE SEED STEPS. The last line printed is the truth as JSON."""

import json
import sys

import torch
from torch import nn
from torch.nn import functional as F

CLASSES, BATCH, ROWS = 8, 16, 4096


class Shifted(nn.Module):
    """Normalises rows by E[x²] - E[x]²: exact for any shift of x, and wrong in fp32 for a large one."""

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        variance = (x * x).mean(-1, keepdim=True) - mean * mean
        return (x - mean) / variance.clamp_min(1e-8).sqrt()


class Model(nn.Module):
    """One of the bodies below and a linear path on normalised rows, and a linear path for the rows as they are."""

    def __init__(self, body, outputs):
        super().__init__()
        self.norm, self.body = Shifted(), body
        self.direct, self.skip = nn.Linear(24, outputs), nn.Linear(24, outputs)

    def forward(self, x):
        normal = self.norm(x)
        return (self.body(normal) + self.direct(normal) + self.skip(x - x.mean(-1, keepdim=True))).squeeze(-1)


class Conv(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.head = nn.Conv1d(1, 8, 5), nn.Conv1d(8, 16, 5), nn.Linear(16, CLASSES)

    def forward(self, x):
        return self.head(torch.relu(self.second(torch.relu(self.first(x[:, None])))).mean(-1))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter, self.layer = nn.Linear(4, 32), nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True)
        self.head = nn.Linear(32, CLASSES)

    def forward(self, x):
        return self.head(self.layer(self.enter(x.view(len(x), 6, 4))).mean(1))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru, self.head = nn.GRU(4, 32, batch_first=True), nn.Linear(32, CLASSES)

    def forward(self, x):
        return self.head(self.gru(x.view(len(x), 6, 4))[0][:, -1])


def perceptron(activation, outputs):
    return nn.Sequential(nn.Linear(24, 48), activation(), nn.Linear(48, 48), activation(), nn.Linear(48, outputs))


MODELS = {"mlp": lambda: perceptron(nn.ReLU, CLASSES), "conv": Conv, "attention": Attention, "recurrent": Recurrent, "regression": lambda: perceptron(nn.Tanh, 1)}
LABELS = {"sample": "SPIKE_DATA", "batch": "SPIKE_DATA", "moments": "SPIKE_STATE", "weights": "SPIKE_STATE", "rate_once": "DIVERGENCE",
          "rate": "DIVERGENCE", "shift": "PRECISION", "none": ""}  # fmt: skip


def data(draw, regression):
    x = torch.randn(ROWS, 24, generator=draw)
    way = torch.randn(24, CLASSES, generator=draw)
    scores = x @ way + torch.randn(ROWS, CLASSES, generator=draw)
    return x, (scores[:, 0] / 5 if regression else scores.argmax(-1))


def unlikely(model, x, y, regression):
    """Targets that the model holds for the least likely."""
    if regression:
        return y + 10
    was_training = model.training
    model.eval()
    with torch.no_grad():
        y = model(x).argmin(-1)
    model.train(was_training)
    return y


def spoil(kind, model, x, y, draw, regression):
    """Changes the batch of the bad step, or the model; returns the places of its bad samples."""
    bad = []
    if kind == "sample":  # some rows in another unit, with a wrong label
        bad = torch.randperm(BATCH, generator=draw)[: 1 + int(torch.randint(3, (), generator=draw))].sort().values.tolist()
        x[bad] *= 200  # in their own memory, as a loader hands them over
        y[bad] = unlikely(model, x, y, regression)[bad]
    elif kind == "batch":
        bad = list(range(BATCH))
        y.copy_(unlikely(model, x, y, regression))
    elif kind == "shift":
        x += 20000
    elif kind == "weights":  # a load of other weights
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.dim() > 1:
                    parameter.mul_(-3)
    return bad


def main():
    name, kind, seed, steps = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    draw = torch.Generator().manual_seed(seed + 1)
    regression = name == "regression"
    model = Model(MODELS[name](), 1 if regression else CLASSES)
    rate = 5e-3
    optimizer = (torch.optim.AdamW if seed % 2 else torch.optim.Adam)(model.parameters(), lr=rate)
    rows = torch.utils.data.TensorDataset(*data(draw, regression), torch.arange(ROWS))
    batches = torch.utils.data.DataLoader(rows, batch_size=BATCH, shuffle=True, drop_last=True)
    bad_step = 110 + seed % 17
    bad, ids, losses, step = [], [], [], 0
    while step < steps:
        for x, y, row in batches:
            if step == bad_step:
                bad = spoil(kind, model, x, y, draw, regression)
                ids = [str(int(row[place])) for place in bad]
            if step == bad_step and kind == "moments":  # a resume whose second moments are of another scale
                for state in optimizer.state.values():
                    state["exp_avg_sq"].mul_(1e-8)
                    state["exp_avg"].mul_(8)
            if kind in ("rate", "rate_once") and step >= bad_step:
                optimizer.param_groups[0]["lr"] = rate * 300 if kind == "rate" or step == bad_step else rate
            output = model(x)
            loss = F.mse_loss(output, y) if regression else F.cross_entropy(output, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            step += 1
            if step >= steps:
                break
    cause = LABELS[kind]
    before, after = max(losses[bad_step - 32 : bad_step]), losses[bad_step + 1 : bad_step + 66]
    if kind in ("rate", "rate_once") and sum(loss > 2 * before for loss in after) < 48:
        cause = "SPIKE_STATE"  # it came back within 64 steps: by its definition no divergence
    print(json.dumps({"cause": cause, "step": bad_step, "samples": bad, "ids": ids, "losses": losses[bad_step - 3 : bad_step + 5]}))


main()
