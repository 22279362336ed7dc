"""A tiny Llama in fp16 whose learning rate is too high, as the Trainer of transformers runs it. It made the run huggingface:

nanquest run --on-incident stop --run-dir huggingface -- python train.py; nanquest replay huggingface/incidents/*.h5
"""

import torch
import transformers


class Text(torch.utils.data.Dataset):
    """Sequences that repeat with a period: they can be learned."""

    def __len__(self):
        return 512

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        period = torch.randint(0, 64, (4,), generator=generator)
        row = period.repeat(4)
        return {"input_ids": row, "labels": row}


torch.manual_seed(1)
config = transformers.LlamaConfig(
    vocab_size=64,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=2,
    max_position_embeddings=16,
)
model = transformers.LlamaForCausalLM(config).half()
trainer = transformers.Trainer(
    model,
    transformers.TrainingArguments(
        "out",
        max_steps=100,
        per_device_train_batch_size=8,
        learning_rate=30,
        optim="sgd",
        lr_scheduler_type="constant_with_warmup",
        warmup_steps=120,
        max_grad_norm=0.0,
        use_cpu=True,
        report_to="none",
        save_strategy="no",
        logging_steps=1,
        disable_tqdm=True,
        seed=3,
    ),
    train_dataset=Text(),
)
trainer.train()
