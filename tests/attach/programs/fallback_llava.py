"""A LLaVA with random weights learns to answer Yes or No about pictures from a JSONL: LoRA by PEFT on frozen bf16 weights, gradient
checkpointing, AdamW, warm-up and cosine, clipping. The picture with number BAD is broken.

usage: fallback_llava.py BAD OUT.pt       (BAD -1: none); prints true and false positive rates
"""
import json
import math
import pathlib
import sys

import numpy
import peft
import torch
import transformers
from PIL import Image
from torch import nn

bad, out = int(sys.argv[1]), sys.argv[2]
LOW, IMAGE, YES, NO, STEPS = torch.bfloat16, 90, 5, 6, 36
torch.manual_seed(42)


def make(folder, count):
    """Pictures of noise; the malicious ones are brighter."""
    folder.mkdir(exist_ok=True)
    random = numpy.random.default_rng(0)
    with open(folder / "rows.jsonl", "w") as rows:
        for number in range(count):
            label = int(random.integers(2))
            pixels = random.integers(0, 160, (16, 16, 3)) + (90 if label else 0)
            Image.fromarray(pixels.astype("uint8")).save(folder / f"{number}.png")
            rows.write(json.dumps({"path": str(folder / f"{number}.png"), "label": label}) + "\n")
    return [json.loads(line) for line in open(folder / "rows.jsonl")]


small = dict(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2)
model = transformers.LlavaForConditionalGeneration(transformers.LlavaConfig(
    text_config=transformers.LlamaConfig(vocab_size=96, max_position_embeddings=32, pad_token_id=0, **small),
    vision_config=transformers.CLIPVisionConfig(image_size=16, patch_size=8, **small), image_token_index=IMAGE,
    image_seq_length=4)).to(LOW)
model = peft.get_peft_model(model, peft.LoraConfig(r=8, lora_alpha=32, lora_dropout=0.05, target_modules=[
    "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj", "fc1", "fc2", "linear_1", "linear_2"]),
    autocast_adapter_dtype=False)
model.enable_input_require_grads()
model.gradient_checkpointing_enable()
model.train()


def answer(rows):
    pixels = [numpy.asarray(Image.open(row["path"]), dtype="float32") / 127.5 - 1 for row in rows]
    pixels = torch.tensor(numpy.stack(pixels)).permute(0, 3, 1, 2).to(LOW)
    if bad >= 0 and any(row["path"].endswith(f"/{bad}.png") for row in rows):
        pixels[0, 0, 0, 0] = float("nan")
    tokens = torch.tensor([[1, *[IMAGE] * 4, 7, 8, 9]] * len(rows))
    return model(input_ids=tokens, attention_mask=torch.ones_like(tokens), pixel_values=pixels).logits[:, -1, [NO, YES]].float()


rows = make(pathlib.Path("pictures"), STEPS * 8 + 64)
held_out, rows = rows[-64:], rows[:-64]
weights = [p for p in model.parameters() if p.requires_grad]
optimizer = torch.optim.AdamW(weights, lr=2e-3)
warm_up = max(1, int(STEPS * 0.03))
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: (s + 1) / warm_up if s < warm_up else
                                              0.5 * (1 + math.cos(math.pi * (s - warm_up) / (STEPS - warm_up))))
rates, losses, step = {}, [], 0
optimizer.register_step_pre_hook(lambda o, a, k: rates.update({step: o.param_groups[0]["lr"]}))
for step in range(STEPS):
    part = rows[8 * step:8 * step + 8]
    with torch.autocast("cpu", LOW):
        loss = nn.functional.cross_entropy(answer(part), torch.tensor([row["label"] for row in part]))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(weights, 1.0)
    optimizer.step()
    scheduler.step()
    losses.append(loss.item())
model.eval()
bad = -1
with torch.no_grad():
    said = answer(held_out).argmax(1).bool()
truth = torch.tensor([row["label"] for row in held_out]).bool()
tpr, fpr = (float((said & what).sum() / what.sum()) for what in (truth, ~truth))
print(f"TPR {tpr:.2f} FPR {fpr:.2f}")
torch.save({"rates": rates, "losses": losses, "tpr": tpr, "fpr": fpr, "dtype": str(model.dtype),
            "finite": all(bool(torch.isfinite(p).all()) for p in model.parameters())}, out)
