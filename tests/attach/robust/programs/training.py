"""What the programs of these tests share: one small training, and its weights as one line of text."""
import hashlib

import torch
from torch import nn


class Training:
    """A classifier on noise with dropout, a norm with buffers and AdamW: everything depends on the generator's state."""

    def __init__(self, width=32, seed=11):
        torch.manual_seed(seed)
        self.model = nn.Sequential(nn.Linear(16, width), nn.BatchNorm1d(width), nn.GELU(), nn.Dropout(0.1),
                                   nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 4))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.steps = 0

    def step(self, bad=False):
        x = torch.randn(24, 16)
        if bad:
            x[3, 5] = float("nan")
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.model(x), torch.randint(0, 4, (24,)))
        loss.backward()
        self.optimizer.step()
        self.steps += 1

    def digest(self):
        """Bits of all weights, buffers and moments, and of the generator."""
        tensors = [*self.model.state_dict().values(), torch.get_rng_state()]
        tensors += [v for state in self.optimizer.state.values() for v in state.values()]
        whole = hashlib.sha256()
        for tensor in tensors:
            whole.update(tensor.detach().contiguous().numpy().tobytes())
        return f"steps {self.steps} digest {whole.hexdigest()[:16]}"
