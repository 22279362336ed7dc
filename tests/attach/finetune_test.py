"""nanquest-trainer finetune against a twin in transformers, PEFT and torch.optim: the losses of twenty steps, what is saved, and greedy samples."""

import contextlib
import io
import json
import math
import os
import sys
import unittest
from unittest import mock

from attached import BIN, importable, main
from finetuned import FinetuneTest

STEPS, BATCH, LR, LOSSES = 20, 4, 3e-3, 2e-4


def targets_and_logits(model, row):
    """Of each text of the row, computed alone and without padding: [(targets, logits)]."""
    import torch
    numbers = row["texts"] or [0] * len(row["tokens"])
    for number in sorted(set(numbers)):
        places = [n for n, text in enumerate(numbers) if text == number]
        targets = torch.tensor([row["targets"][n] for n in places])
        yield targets, model(input_ids=torch.tensor([[row["tokens"][n] for n in places]]), use_cache=False).logits[0]


def train(model, rows, rates, batch=BATCH, clip=1.0, decay=0.0):
    """The twin's losses: a step of torch's AdamW at each rate."""
    import torch
    weights = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW([{"params": [p for p in weights if p.dim() >= 2], "weight_decay": decay},
                                   {"params": [p for p in weights if p.dim() < 2], "weight_decay": 0.0}], lr=1.0)
    losses = []
    model.train()
    for step, rate in enumerate(rates):
        parts = [part for row in rows[step * batch:(step + 1) * batch] for part in targets_and_logits(model, row)]
        loss = torch.nn.functional.cross_entropy(torch.cat([logits for _, logits in parts]), torch.cat([targets for targets, _ in parts]))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, clip)
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    return losses


def cosine(step):
    """The default schedule over STEPS: one step of warm-up (0.03 of them), then half a cosine to zero."""
    return LR if step < 1 else LR * 0.5 * (1 + math.cos(math.pi * (step - 1) / (STEPS - 1)))


@unittest.skipUnless(importable("transformers") and importable("peft"), "transformers and peft are not installed")
class TwinTest(FinetuneTest):
    def assert_losses(self, run, theirs):
        ours = self.losses(run)
        self.assertEqual(len(ours), len(theirs))
        worst = max(abs(a - b) / b for a, b in zip(ours, theirs))
        self.assertLess(worst, LOSSES, f"{ours}\n{theirs}")
        self.assertLess(theirs[-1], theirs[0] - 0.05, "it learns")

    def assert_same(self, model, twin, rows, most=1e-3):
        """Logits of what was saved against those of the twin after its last step."""
        import torch
        with torch.no_grad():
            for row in rows[:8]:
                for (_, a), (_, b) in zip(targets_and_logits(model.eval(), row), targets_and_logits(twin, row)):
                    self.assertLess(((a - b).norm() / b.norm()).item(), most)

    def assert_greedy(self, twin, tokenizer, *arguments):
        """Token for token what generate(do_sample=False) adds; twin: the model as transformers loads it."""
        import torch
        prompts = [tokenizer(text)["input_ids"] for text in ("What comes", "one two", "after thirty-", "?", "What is ten and <|assistant|>")]
        ours = self.greedy(prompts, *arguments, "--max-new", 24)
        for prompt, added in zip(prompts, ours, strict=True):
            with torch.no_grad():
                whole = twin.generate(input_ids=torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
                                      do_sample=False, max_new_tokens=24)
            self.assertEqual(added, whole[0, len(prompt):].tolist())
        self.assertGreater(len({token for added in ours for token in added}), 2, "it says more than one thing")

    def gpt2(self, tokenizer, folder="gpt2"):
        import torch
        import transformers
        torch.manual_seed(3)
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
            vocab_size=len(tokenizer), n_embd=32, n_layer=2, n_head=4, n_positions=128, initializer_range=0.1, resid_pdrop=0.0,
            embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id))
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return model

    def lora(self, name, base, rows, tokenizer, *arguments):
        """`base`, with the adapter that the trainer begins with, trained beside it."""
        import peft
        import transformers
        options = ["--lora", "--lora-dropout", 0, "--batch-size", BATCH, *arguments]
        # One step that moves nothing, to see with what it begins.
        self.finetune("first", *options, "--steps", 1, "--lr", 1e-30, "--warmup-ratio", 0, model=name)
        twin = peft.PeftModel.from_pretrained(base, "first/checkpoints/adapter", is_trainable=True)
        config = twin.peft_config["default"]
        self.assertEqual((config.r, config.lora_alpha, config.lora_dropout), (8, 32, 0))
        self.finetune("run", *options, "--steps", STEPS, "--lr", LR, "--schedule", "constant", "--warmup-ratio", 0, model=name)
        self.assert_losses("run", train(twin, rows, [LR] * STEPS))
        again = peft.PeftModel.from_pretrained(transformers.AutoModelForCausalLM.from_pretrained(name), "run/checkpoints/adapter")
        self.assert_same(again, twin, rows)
        self.assert_greedy(again.eval(), tokenizer, "--model", name, "--adapter", "run/checkpoints/adapter")

    def full(self, name, twin, rows, tokenizer, *arguments, batch=BATCH):
        import transformers
        self.finetune("run", "--batch-size", batch, "--steps", STEPS, "--lr", LR, "--weight-decay", 0.1, *arguments, model=name)
        self.assert_losses("run", train(twin, rows, map(cosine, range(STEPS)), batch, decay=0.1))
        again = transformers.AutoModelForCausalLM.from_pretrained("run/checkpoints/model").eval()
        self.assert_same(again, twin, rows)
        self.assertEqual(set(again.state_dict()), set(twin.state_dict()))
        self.assertEqual(transformers.AutoTokenizer.from_pretrained("run/checkpoints/model").get_vocab(), tokenizer.get_vocab())
        self.assert_greedy(again, tokenizer, "--model", "run/checkpoints/model")

    def test_llama_with_lora(self):
        base, tokenizer = self.sample()
        self.prepare()
        self.lora("llama", base, self.rows(), tokenizer)

    def test_llama_whole_in_micro_batches_of_packed_rows(self):
        twin, tokenizer = self.sample()
        self.prepare("--packing", "--max-length", "36", "--learn", "all")
        rows = self.rows()
        self.assertGreaterEqual(len(rows), STEPS * 2)
        self.assertGreater(max(max(row["texts"]) for row in rows), 0, "some rows hold several texts")
        self.full("llama", twin, rows, tokenizer, "--accumulation", 2, batch=2)

    def test_gpt2_with_lora_on_every_layer(self):
        _, tokenizer = self.sample()
        base = self.gpt2(tokenizer)
        self.prepare(model="gpt2")
        self.lora("gpt2", base, self.rows(), tokenizer, "--lora-targets", "all-linear", "--hf-attention", "written")

    def test_gpt2_whole(self):
        _, tokenizer = self.sample()
        twin = self.gpt2(tokenizer)
        self.prepare(model="gpt2")
        self.full("gpt2", twin, self.rows(), tokenizer, "--checkpointing")

    def say(self, *arguments, stdin=""):
        """nanquest sample in this process."""
        from nanquest import cli
        said = io.StringIO()
        with contextlib.redirect_stdout(said), mock.patch.object(sys, "stdin", io.StringIO(stdin)), mock.patch.dict(os.environ, NANQUEST_BIN=str(BIN)):
            self.assertEqual(cli.main(["sample", "--model", "run/checkpoints/model", *arguments]), 0)
        return said.getvalue()

    def test_what_was_learned_is_said(self):
        """nanquest sample: the text that the trainer's tokens stand for."""
        _, tokenizer = self.sample()
        self.prepare()
        self.finetune("run", "--batch-size", 16, "--epochs", 25, "--lr", 3e-3)
        question, expected = "What comes after seven?", "eight."
        said = self.say("--chat", stdin=f"{question}\n\nWhat comes before three?\n")
        self.assertEqual(said, f"{expected}\ntwo.\n")
        text = tokenizer.apply_chat_template([{"role": "user", "content": question}], tokenize=False, add_generation_prompt=True)
        said = self.say("--json", "--max-new", "2", text, "é")
        first = json.loads(said.splitlines()[0])
        self.assertEqual(first["prompt"], text)
        self.assertEqual(first["text"], tokenizer.decode(first["tokens"], skip_special_tokens=True))
        self.assertTrue(expected.startswith(first["text"]) and len(first["tokens"]) == 2, first)


if __name__ == "__main__":
    main()
