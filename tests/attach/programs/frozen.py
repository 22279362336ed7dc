"""frozen.py MODEL SAVED: a Llama from its folder, all of it frozen but for a low-rank pair beside each down projection; the mask of step 3 makes NaN.

What the model holds at the end is written to SAVED, for who asks whether anything of it was changed.
"""
import sys

import safetensors.torch
import torch
import transformers
from torch import nn

torch.manual_seed(0)
model = transformers.AutoModelForCausalLM.from_pretrained(sys.argv[1]).requires_grad_(False)


class Pair(nn.Module):
    def __init__(self, frozen):
        super().__init__()
        self.frozen, self.a, self.b = frozen, nn.Linear(frozen.in_features, 4, bias=False), nn.Linear(4, frozen.out_features, bias=False)

    def forward(self, x):
        return self.frozen(x) + self.b(self.a(x))


for layer in model.model.layers:
    layer.mlp.down_proj = Pair(layer.mlp.down_proj)
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
ids = torch.randint(0, model.config.vocab_size, (4, 16))
for step in range(5):
    optimizer.zero_grad()
    loss = model(input_ids=ids, labels=ids, use_cache=False).loss
    if step == 3:
        loss = loss + torch.log(torch.tensor(-1.0))
    loss.backward()
    optimizer.step()
safetensors.torch.save_file({name.replace(".frozen", ""): p.clone() for name, p in model.named_parameters() if not p.requires_grad}, sys.argv[2])
