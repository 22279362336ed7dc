"""Another thread writes NaN into the batch of step 8 after the encoder has read it and before the loss does."""
import threading

import torch
from torch import nn

torch.manual_seed(0)


class AutoEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(784, 8), nn.Linear(8, 784)

    def forward(self, x):
        return self.decoder(torch.relu(self.encoder(x)))


model = AutoEncoder()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
batches = torch.utils.data.DataLoader(torch.rand(640, 784), batch_size=64)
for step, x in enumerate(batches):
    back = model(x)
    if step == 8:
        writer = threading.Thread(target=lambda: x.numpy().__setitem__((3, 5), float("nan")))
        writer.start()
        writer.join()
    loss = ((back - x) ** 2).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
