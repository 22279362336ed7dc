"""Two networks that train each other in turn (a GAN), an optimizer each; the generator's own loss is NaN in round 3."""
import torch
from torch import nn


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(2, 4)

    def forward(self, noise, drift):
        return (self.body(noise) + drift).sqrt()


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Linear(4, 1)

    def forward(self, samples):
        return self.score(samples)


torch.manual_seed(0)
generator, critic = Generator(), Critic()
generator_optimizer = torch.optim.SGD(generator.parameters(), lr=1e-2)
critic_optimizer = torch.optim.Adam(critic.parameters())
for round_ in range(5):
    critic_optimizer.zero_grad()
    fake = generator(torch.rand(3, 2), 9.0).detach()
    (critic(fake).mean() - critic(torch.randn(3, 4)).mean()).backward()
    critic_optimizer.step()
    generator_optimizer.zero_grad()
    loss = -critic(generator(torch.rand(3, 2), -9.0 if round_ == 3 else 9.0)).mean()
    loss.backward()
    generator_optimizer.step()
    if round_ == 3:
        break
