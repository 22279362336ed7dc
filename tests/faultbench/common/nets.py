"""Small nets of real shapes: every one has three places, `early`, `middle` and `late`, at which a family may put a part.

A part sees the hidden values as [batch, tokens, width], whatever the net. Nets return (logits [batch, classes], hidden).
"""

import math

import torch
from torch import nn
from torch.nn import functional as F

TOKENS, FEATURES, WIDTH, CLASSES, VOCABULARY = 16, 16, 32, 8, 50
PLACES = ("early", "middle", "late")


class Place(nn.Module):
    """A named point of a net. `inner` is the family's part, where it has one here."""

    def __init__(self):
        super().__init__()
        self.inner = None

    def forward(self, x):
        if self.inner is None:
            return x
        if x.dim() == 4:
            batch, width, height, breadth = x.shape
            tokens = self.inner(x.flatten(2).transpose(1, 2))
            return tokens.transpose(1, 2).reshape(batch, width, height, breadth)
        return self.inner(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        for name in PLACES:
            setattr(self, name, Place())
        self.head = nn.Linear(WIDTH, CLASSES)

    def ending(self, x):
        """`late`, then tokens, mean and head."""
        x = self.late(x)
        if x.dim() == 4:
            x = x.flatten(2).transpose(1, 2)
        return self.head(x.mean(1)), x


class RMSNorm(nn.Module):
    def __init__(self, width, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x):
        wide = x if x.dtype == torch.float64 else x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return self.weight * wide.to(x.dtype)


class Attention(nn.Module):
    """Written out, so that every op of it is dispatched. `causal` masks with -inf on purpose."""

    def __init__(self, width, heads, causal):
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.heads, self.causal = heads, causal

    def forward(self, x):
        batch, tokens, width = x.shape
        q, k, v = self.qkv(x).view(batch, tokens, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / math.sqrt(width // self.heads)
        if self.causal:
            mask = torch.full((tokens, tokens), float("-inf"), dtype=scores.dtype).triu(1)
            scores = scores + mask
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, tokens, width))


class Block(nn.Module):
    def __init__(self, width, causal, norm):
        super().__init__()
        self.norm1, self.norm2 = norm(width), norm(width)
        self.attention = Attention(width, 4, causal)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Transformer(Net):
    def __init__(self, causal, norm):
        super().__init__()
        self.embedding, self.project = nn.Embedding(VOCABULARY, WIDTH), nn.Linear(FEATURES, WIDTH)
        self.blocks = nn.ModuleList(Block(WIDTH, causal, norm) for _ in range(4))

    def forward(self, batch):
        x = self.early(self.embedding(batch["ids"]) + self.project(batch["x"]))
        for number, block in enumerate(self.blocks):
            x = block(x)
            if number == 1:
                x = self.middle(x)
        return self.ending(x)


class Residual(nn.Module):
    def __init__(self, norm):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(WIDTH, WIDTH, 3, padding=1), nn.Conv2d(WIDTH, WIDTH, 3, padding=1)
        self.norm1, self.norm2 = norm(), norm()

    def forward(self, x):
        return F.relu(x + self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x))))))


class Cnn(Net):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(FEATURES, WIDTH, 1)
        self.blocks = nn.ModuleList(Residual(lambda: nn.BatchNorm2d(WIDTH)) for _ in range(7))

    def forward(self, batch):
        x = batch["x"].transpose(1, 2).reshape(-1, FEATURES, 4, TOKENS // 4)
        x = self.early(self.stem(x))
        for number, block in enumerate(self.blocks):
            x = block(x)
            if number == 3:
                x = self.middle(x)
        return self.ending(x)


class UNet(Net):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(FEATURES, WIDTH, 1)
        self.down1, self.down2, self.bottom, self.up1, self.up2 = (Residual(lambda: nn.GroupNorm(4, WIDTH)) for _ in range(5))
        self.merge1, self.merge2 = nn.Conv2d(2 * WIDTH, WIDTH, 1), nn.Conv2d(2 * WIDTH, WIDTH, 1)

    def forward(self, batch):
        x = batch["x"].transpose(1, 2).reshape(-1, FEATURES, 4, TOKENS // 4)
        one = self.down1(self.early(self.stem(x)))
        two = self.down2(F.avg_pool2d(one, 2))
        x = self.bottom(F.avg_pool2d(two, 2))
        x = self.up1(self.merge1(torch.cat([x.repeat_interleave(2, 2).repeat_interleave(2, 3), two], 1)))
        x = self.middle(self.merge2(torch.cat([x.repeat_interleave(2, 2).repeat_interleave(2, 3), one], 1)))
        x = self.up2(x)
        return self.ending(x)


class Recurrent(Net):
    """`cell` over the tokens, then (for the mixer) blocks that mix tokens and features."""

    def __init__(self, cell, mixers):
        super().__init__()
        self.cell = cell(FEATURES, WIDTH)
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2 * mixers))
        self.tokens = nn.ModuleList(nn.Linear(TOKENS, TOKENS) for _ in range(mixers))
        self.features = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(mixers))
        self.long = cell is nn.LSTMCell

    def forward(self, batch):
        x, state, steps = batch["x"], None, []
        for t in range(x.shape[1]):
            state = self.cell(x[:, t], state)
            steps.append(state[0] if self.long else state)
        x = self.early(torch.stack(steps, 1))
        for number, (tokens, features) in enumerate(zip(self.tokens, self.features)):
            x = x + F.gelu(tokens(self.norms[2 * number](x).transpose(1, 2)).transpose(1, 2))
            x = x + F.gelu(features(self.norms[2 * number + 1](x)))
        return self.ending(self.middle(x))


class Mlp(Net):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(FEATURES, WIDTH)
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(14))
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(14))

    def forward(self, batch):
        x = self.early(self.stem(batch["x"]))
        for number, (norm, layer) in enumerate(zip(self.norms, self.layers)):
            x = x + torch.tanh(layer(norm(x)))
            if number == 6:
                x = self.middle(x)
        return self.ending(x)


NETS = {
    "encoder": lambda: Transformer(False, nn.LayerNorm),
    "decoder": lambda: Transformer(True, RMSNorm),
    "cnn": Cnn,
    "lstm": lambda: Recurrent(nn.LSTMCell, 1),
    "mixer": lambda: Recurrent(nn.GRUCell, 3),
    "unet": UNet,
    "mlp": Mlp,
}
