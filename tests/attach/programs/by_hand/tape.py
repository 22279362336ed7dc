"""In the style of GradientTape: an object that takes the derivative of what was computed inside it, with variables of its own that
are assigned. Step 12 takes the logarithm of zero."""
import torch


class Variable:
    def __init__(self, value):
        self.value = value.requires_grad_()

    def assign_sub(self, change):
        self.value = (self.value.detach() - change).requires_grad_()


class Tape:
    def __enter__(self):
        self.mode = torch.enable_grad()
        self.mode.__enter__()
        return self

    def __exit__(self, *error):
        self.mode.__exit__(*error)

    @staticmethod
    def gradient(loss, variables):
        return torch.autograd.grad(loss, [each.value for each in variables])


torch.manual_seed(0)
variables = [Variable(torch.randn(5, 3)), Variable(torch.zeros(3))]


@torch.no_grad()
def iterate(step):
    x, label = torch.randn(30, 5), torch.randint(0, 3, (30,))
    with Tape() as tape:
        shares = torch.softmax(x @ variables[0].value + variables[1].value, 1)
        if step == 12:
            shares = shares * (torch.arange(3) > 0)
        loss = -shares[torch.arange(30), label].log().mean()
    for variable, change in zip(variables, tape.gradient(loss, variables)):
        variable.assign_sub(0.1 * change)


for step in range(16):
    iterate(step)
