"""A learned prompt is added to the input before the model is called; in step 2 the loss is the logarithm of a zero."""
import torch
from torch import nn

torch.manual_seed(0)
model, prompt = nn.Linear(8, 8), nn.Parameter(torch.zeros(8))
optimizer = torch.optim.SGD([*model.parameters(), prompt], lr=1e-3)
for step in range(4):
    probabilities = model(torch.tanh(torch.rand(4, 8) + prompt)).softmax(-1)
    if step == 2:
        probabilities = probabilities * (probabilities < probabilities.amax())
    loss = -probabilities.log().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
