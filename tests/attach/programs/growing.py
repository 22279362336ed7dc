"""Values that double every ten steps, so that it is known when they leave fp16: 2^(step / 10) reaches 65504 at step 160.

usage: growing.py plain|gelu STEPS [RUN_DIR]   with RUN_DIR it attaches itself, and prints what it was told
"""

import sys

import torch


class Grow(torch.nn.Module):
    def forward(self, x, factor):
        return x * factor


class Model(torch.nn.Module):
    def __init__(self, gelu):
        super().__init__()
        self.grow, self.gelu = Grow(), gelu
        self.weight = torch.nn.Parameter(torch.ones(4))

    def forward(self, x, factor):
        y = self.grow(x, factor)
        y = torch.tanh(y * 0.5 + 1) if self.gelu else y * 0.25
        return (self.weight * y.float()).mean().square().log1p()


def main(kind, steps, run_dir=None):
    if run_dir:
        import nanquest
        nanquest.attach(run_dir=run_dir)

        @nanquest.on_forecast
        def told(forecast):
            print("told", forecast.step, forecast.directory, forecast.text)

    model = Model(kind == "gelu")
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for step in range(int(steps)):
        optimizer.zero_grad()
        model(torch.ones(2, 4, dtype=torch.float16), 2 ** (step / 10)).backward()
        optimizer.step()
    print("trained", step + 1)


if __name__ == "__main__":
    main(*sys.argv[1:])
