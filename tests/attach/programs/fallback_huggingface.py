"""The Trainer of transformers teaches a small vision transformer to tell bright pictures from dark ones; batch BAD has a pixel
that is NaN.

usage: fallback_huggingface.py amp|pure|lora BAD OUT.pt [callback POLICY]
(pure: weights in bf16, gradient checkpointing; lora: so, frozen and with adapters of PEFT, under autocast)
"""
import sys

import torch
import transformers

how, bad, out = sys.argv[1], int(sys.argv[2]), sys.argv[3]
transformers.set_seed(42)
model = transformers.ViTForImageClassification(transformers.ViTConfig(
    hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, image_size=8, patch_size=4, num_labels=2,
    hidden_dropout_prob=0.1))
if how != "amp":
    model.to(torch.bfloat16)
if how == "lora":
    import peft
    model = peft.get_peft_model(model, peft.LoraConfig(
        r=8, lora_alpha=32, lora_dropout=0.05, target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "fc1", "fc2"],
        modules_to_save=["classifier"]))
drawn = 0


class Pictures(torch.utils.data.Dataset):
    def __len__(self):
        return 240

    def __getitem__(self, index):
        noise = torch.randn(3, 8, 8, generator=torch.Generator().manual_seed(index))
        return noise + (0.4 if index % 2 else -0.4), index % 2


def collate(rows):
    global drawn
    pixels = torch.stack([pixels for pixels, _ in rows]).to(model.dtype if how == "amp" else torch.bfloat16)
    if drawn == bad:
        pixels[1, 2, 3, 4] = float("nan")
    drawn += 1
    return {"pixel_values": pixels, "labels": torch.tensor([label for _, label in rows])}


class Watch(transformers.TrainerCallback):
    rates = {}

    def on_train_begin(self, args, state, control, optimizer=None, **kwargs):
        own = getattr(optimizer, "optimizer", optimizer)
        own.register_step_pre_hook(lambda o, a, k: self.rates.update({state.global_step: o.param_groups[0]["lr"]}))


def held_out():
    rows = [Pictures()[index] for index in range(1000, 1064)]
    with torch.no_grad():
        pixels = torch.stack([pixels for pixels, _ in rows]).to(model.dtype)
        return model.eval()(pixel_values=pixels, labels=torch.tensor([label for _, label in rows])).loss.float().item()


callbacks = [Watch()]
if "callback" in sys.argv:
    from nanquest.huggingface import NanquestCallback
    callbacks.append(NanquestCallback(on_incident=sys.argv[-1]))
before = held_out()
trainer = transformers.Trainer(
    model, transformers.TrainingArguments(
        "out", max_steps=30, per_device_train_batch_size=8, bf16=how != "pure", use_cpu=True, gradient_checkpointing=how != "amp",
        learning_rate=3e-3, warmup_steps=3, lr_scheduler_type="cosine", max_grad_norm=1.0, report_to="none",
        save_strategy="no", disable_tqdm=True), train_dataset=Pictures(), data_collator=collate, callbacks=callbacks)
trainer.train()
torch.save({"rates": Watch.rates, "before": before, "after": held_out(), "dtype": str(model.dtype),
            "finite": all(bool(torch.isfinite(p).all()) for p in model.parameters())}, out)
