"""nanquest prepare of pictures with labels and nanquest-trainer yesno, against a twin in transformers, PEFT, Pillow and torch.optim: pixels and
tokens, the losses of twenty steps, true and false positive rates, what is saved; one picture that overflows; and what is refused, in one line."""

import json
import math
import os
import pathlib
import shlex
import shutil
import sys
import unittest
from unittest import mock

from attached import importable, main
from finetuned import FinetuneTest, run_sample

STEPS, BATCH, LR, LOSSES = 20, 4, 2e-3, 2e-4
QUESTION = "Does this picture contain a prompt injection? Answer with one word, Yes or No."
TARGETS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj", "fc1", "fc2", "out_proj"]


class PicturesTest(FinetuneTest):
    def sample(self, folder="llava"):
        """The sample's model in `folder`, and its pictures; (model, processor)."""
        run_sample("tiny_llava", folder, "pictures")
        import transformers
        processor = transformers.AutoProcessor.from_pretrained(folder)
        processor.image_processor = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
        return transformers.LlavaForConditionalGeneration.from_pretrained(folder), processor

    def prepare(self, *options, model="llava", data="pictures/train.jsonl", **more):
        return super().prepare(*options, model=model, data=data, **more)

    def yesno(self, run, *arguments, model="llava", **more):
        return self.finetune(run, *arguments, model=model, verb="yesno", **more)

    def summary(self, run, *arguments, **more):
        return json.loads(self.yesno(run, *arguments, **more).stdout)


def asked(processor, path):
    """What a program around transformers gives the model for a picture."""
    from PIL import Image
    messages = [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": QUESTION}]}]
    prompt = processor.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    return processor(text=[prompt], images=[Image.open(path).convert("RGB")], return_tensors="pt")


def answers_of(processor):
    return [processor.tokenizer(text, add_special_tokens=False)["input_ids"][0] for text in (" No", " Yes")]


def said(model, processor, pictures):
    """The logits of No and Yes for each picture."""
    import torch
    inputs = [asked(processor, path) for path in pictures]
    logits = model(input_ids=torch.cat([i["input_ids"] for i in inputs]), pixel_values=torch.cat([i["pixel_values"] for i in inputs]),
                   attention_mask=torch.cat([i["attention_mask"] for i in inputs]), use_cache=False).logits
    return logits[:, -1, answers_of(processor)]


def train(model, processor, rows):
    """The twin's losses, by the schedule of the program it began with, but that its first rate is not zero."""
    import torch
    weights = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=LR, weight_decay=0.0)
    warm_up, losses = max(1, int(STEPS * 0.03)), []
    model.train()
    for step in range(STEPS):
        part = rows[step * BATCH:(step + 1) * BATCH]
        for group in optimizer.param_groups:
            group["lr"] = LR * ((step + 1) / warm_up if step < warm_up else 0.5 * (1 + math.cos(math.pi * (step - warm_up) / (STEPS - warm_up))))
        optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.cross_entropy(said(model, processor, [row["picture"] for row in part]), torch.tensor([row["label"] for row in part]))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    return losses


@unittest.skipUnless(importable("transformers") and importable("peft") and importable("PIL"), "transformers, peft and Pillow are not installed")
class TwinTest(PicturesTest):
    def assert_as(self, twin, processor, run, summary, rows):
        """Losses, and what is shown of the held-out pictures."""
        import torch
        theirs, ours = train(twin, processor, rows), self.losses(run)
        self.assertEqual(len(ours), STEPS)
        worst = max(abs(a - b) / b for a, b in zip(ours, theirs))
        self.assertLess(worst, LOSSES, f"{ours}\n{theirs}")
        self.assertLess(sum(theirs[-5:]), sum(theirs[:5]), "it learns")
        lines = [json.loads(line) for line in pathlib.Path("pictures/val.jsonl").read_text().splitlines()]
        with torch.no_grad():
            logits = said(twin, processor, [f"pictures/{line['path']}" for line in lines])
        yes, truth = logits.argmax(1).bool(), torch.tensor([line["label"] for line in lines])
        found = summary["held_out"]
        self.assertAlmostEqual(found["tpr"], yes[truth == 1].float().mean().item(), places=6)
        self.assertAlmostEqual(found["fpr"], yes[truth == 0].float().mean().item(), places=6)
        self.assertAlmostEqual(found["loss"], torch.nn.functional.cross_entropy(logits, truth).item(), delta=1e-3)
        return logits, [f"pictures/{line['path']}" for line in lines]

    def near(self, a, b, most=1e-3):
        self.assertLess(((a - b).norm() / b.norm()).item(), most)

    def test_with_lora(self):
        import peft
        import torch
        model, processor = self.sample()
        self.prepare()
        self.prepare(data="pictures/val.jsonl", out="val")
        options = ("--lora", "--lora-dropout", 0, "--batch-size", BATCH, "--val-data", "val")
        self.yesno("first", *options, "--steps", 1, "--lr", 1e-30, "--eval-windows", 0)  # to see with what it begins
        twin = peft.PeftModel.from_pretrained(model, "first/checkpoints/adapter", is_trainable=True)
        config = twin.peft_config["default"]
        self.assertEqual((config.r, config.lora_alpha, set(config.target_modules)), (8, 32, set(TARGETS)))
        process = self.yesno("run", *options, "--steps", STEPS, "--lr", LR)
        summary = json.loads(process.stdout)
        logits, pictures = self.assert_as(twin, processor, "run", summary, self.rows(kind="pictures"))
        self.assertRegex(process.stderr, r"(?m)^held-out data: 40 pictures of 16 x 16 pixels, \d+ of them to be answered with Yes$")
        # The tower's last layer is in no loss: told of, as its adapters would stop a data-parallel run.
        self.assertIn("12 weights of model.vision_tower.encoder.layers.1 get no gradient, the first of them self_attn.q_proj.lora_A.weight\n",
                      process.stderr)
        again = peft.PeftModel.from_pretrained(type(model).from_pretrained("llava"), summary["files"]["learned"]).eval()
        with torch.no_grad():
            self.near(said(again, processor, pictures), logits)

    def test_whole_in_micro_batches(self):
        import torch
        model, processor = self.sample()
        self.prepare()
        self.prepare(data="pictures/val.jsonl", out="val")
        summary = self.summary("run", "--batch-size", BATCH, "--accumulation", 2, "--val-data", "val", "--steps", STEPS, "--lr", LR,
                               "--no-checkpointing", "--hf-attention", "written")
        logits, pictures = self.assert_as(model, processor, "run", summary, self.rows(kind="pictures"))
        again = type(model).from_pretrained("run/checkpoints/model").eval()
        with torch.no_grad():
            self.near(said(again, processor, pictures), logits)
        import transformers
        self.assertEqual(transformers.AutoProcessor.from_pretrained("run/checkpoints/model").chat_template, processor.chat_template)


@unittest.skipUnless(importable("transformers") and importable("PIL"), "transformers and Pillow are not installed")
class PrepareTest(PicturesTest):
    def test_tokens_and_pixels_are_those_of_transformers(self):
        import torch
        from PIL import Image
        _, processor = self.sample()
        lines = [json.loads(line) for line in pathlib.Path("pictures/train.jsonl").read_text().splitlines()][:5]
        for number, (mode, size) in enumerate((("L", (40, 23)), ("RGBA", (9, 30)), ("P", (300, 301)))):  # of other kinds and sizes
            Image.effect_noise(size, 90).convert(mode).save(f"other{number}.png")
            lines.append({"image": f"other{number}.png", "label": number % 2})
        pathlib.Path("pictures/mixed.jsonl").write_text("".join(json.dumps(line) + "\n\n" for line in lines))
        self.prepare(data="pictures/mixed.jsonl")
        rows = {row["id"]: row for row in self.rows(kind="pictures")}
        self.assertEqual(len(rows), len(lines))
        for number, line in enumerate(lines):
            row = rows[f"pictures/mixed.jsonl:{2 * number + 1}"]
            self.assertEqual(row["label"], line["label"])
            read = asked(processor, row["picture"])
            self.assertEqual(row["tokens"], read["input_ids"][0].tolist())
            self.assertEqual(row["answers"], answers_of(processor))
            self.assertTrue(torch.equal(torch.tensor(row["pixels"]), read["pixel_values"].flatten()), "bit for bit")
        manifest = json.loads(pathlib.Path("data/manifest.json").read_text())
        self.assertEqual(manifest["answers"]["yes"]["text"], " Yes")
        self.assertEqual(manifest["total"]["yes"], sum(line["label"] for line in lines))
        before = pathlib.Path("data/manifest.json").stat().st_mtime_ns
        self.prepare(data="pictures/mixed.jsonl")
        self.assertEqual(pathlib.Path("data/manifest.json").stat().st_mtime_ns, before, "nothing to do")
        Image.new("RGB", (20, 20)).save("other0.png")
        self.assertIn("give --overwrite", self.prepare(data="pictures/mixed.jsonl", code=2))
        self.prepare("--overwrite", "--question", "Is it bright?", data="pictures/mixed.jsonl")
        self.assertIn("Is it bright?", processor.tokenizer.decode(self.rows(kind="pictures")[0]["tokens"]))

    def test_lines_that_cannot_be_used_are_named(self):
        self.sample()
        good = {"path": "0.png", "label": 1}
        whole = pathlib.Path("pictures/1.png").read_bytes()
        pathlib.Path("pictures/short.png").write_bytes(whole[:len(whole) // 2])
        pathlib.Path("pictures/text.png").write_text("not a picture")
        broken = {'{"path": ': "not JSON", '{"path": "0.png"}': "it has no label", '{"path": "0.png", "label": 2}': "its label is 2, neither 0 (No) nor 1 (Yes)",
                  '{"path": "0.png", "label": true}': "its label is true", '{"path": "0.png", "label": "1"}': 'its label is "1"',
                  '{"path": "none.png", "label": 1}': "none.png: no such picture", '{"path": "short.png", "label": 1}': "short.png: can't be read as a picture",
                  '{"path": "text.png", "label": 1}': "text.png: can't be read as a picture", '{"path": 3, "label": 1}': "it names no picture",
                  '{"text": "a run"}': "text among lines with pictures", '{"label": 1}': "it names no picture"}
        lines = pathlib.Path("pictures/x.jsonl")
        for line in list(broken)[:3]:
            with self.subTest(line):
                lines.write_text(json.dumps(good) + "\n" + line + "\n")
                told = self.prepare(data="pictures/x.jsonl", code=3)
                self.assertEqual(told.count("\n"), 1, told)
                for part in ("nanquest: pictures/x.jsonl:2: ", broken[line], "--skip-broken"):
                    self.assertIn(part, told)
                self.assertFalse(pathlib.Path("data/manifest.json").exists())
        lines.write_text("\n".join([json.dumps(good), *broken]))
        self.prepare("--skip-broken", data="pictures/x.jsonl", code=1)
        self.assertEqual([row["id"] for row in self.rows(kind="pictures")], ["pictures/x.jsonl:1"])
        skipped = json.loads(pathlib.Path("data/manifest.json").read_text())["skipped"]
        self.assertEqual(len(skipped), len(broken))
        for number, ((where, said_why), why) in enumerate(zip(skipped, broken.values())):
            self.assertEqual(where, f"pictures/x.jsonl:{number + 2}")
            self.assertIn(why, said_why)
        self.assertIn("--packing is for text", self.prepare("--packing", data="pictures/x.jsonl", out="other", code=2))
        shutil.copytree("llava", "bare")
        pathlib.Path("bare/chat_template.jinja").unlink()
        self.assertIn("bare: its processor has no chat template", self.prepare(data="pictures/x.jsonl", model="bare", out="other", code=3))


    def test_lines_are_prepared_by_the_trainer(self):
        self.sample()
        command = self.scratch / "bin" / "nanquest"
        command.parent.mkdir()
        command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m nanquest "$@"\n')
        command.chmod(0o755)
        with mock.patch.dict(os.environ, PATH=f"{command.parent}:{os.environ['PATH']}"):
            summary = self.summary("run", "--steps", 1, data="pictures/train.jsonl")
            self.assertEqual(summary["steps"], 1)
            self.assertTrue(pathlib.Path("pictures/train.prepared/manifest.json").exists())
            pathlib.Path("pictures/broken.jsonl").write_text('{"path": "0.png", "label": 3}\n')
            process = self.yesno("other", "--steps", 1, data="pictures/broken.jsonl", code=3)
            self.assertIn("pictures/broken.jsonl:1: its label is 3", process.stderr)


@unittest.skipUnless(importable("transformers") and importable("PIL"), "transformers and Pillow are not installed")
class IncidentTest(PicturesTest):
    def test_one_picture_overflows_and_the_rate_stays_halved(self):
        self.sample()
        self.prepare()
        process = self.yesno("run", "--lora", "--batch-size", 8, "--epochs", 2, "--lr", 1e-3, "--warmup-ratio", 0, "--schedule", "constant",
                             "--amp-dtype", "fp16", "--holdout-every", 10, code=1)
        summary = json.loads(process.stdout)
        self.assertEqual((summary["outcome"], summary["fell_back"], summary["precision"], summary["backoff"], summary["incidents"]),
                         ("finished", True, "fp32", 0.5, 1), process.stderr)
        self.assertIn("held-out tpr", process.stderr)  # after the first pass
        self.assertIn("from here on: fp32, learning rate times 0.5\n", process.stderr)
        self.assertRegex(process.stderr, r"step 0/\d+ .* \d+ pictures/s")
        rates = [json.loads(line)["lr"] for line in pathlib.Path("run/metrics.jsonl").read_text().splitlines()]
        halved = rates.index(5e-4)
        self.assertEqual(rates, [1e-3] * halved + [5e-4] * (len(rates) - halved), "for the rest of the run")
        self.assertGreater(len(rates) - halved, 10)
        for name in ("loss", "tpr", "fpr"):
            self.assertTrue(math.isfinite(summary["held_out"][name]), summary["held_out"])
        verdict = self.replay("diagnose", self.scratch / summary["snapshots"][0])
        self.assertEqual((verdict["cause"], verdict["culprit"]["module"], verdict["culprit"]["op"], verdict["phase"]),
                         ("FP16_OVERFLOW", "model.language_model.layers.0.mlp.down_proj", "aten::mm", "forward"), verdict)
        self.assertTrue(verdict["reproduction"]["bit_exact"], verdict["reproduction"])
        self.assertTrue(verdict["fix"]["verified"], verdict["fix"])


@unittest.skipUnless(importable("transformers") and importable("PIL"), "transformers and Pillow are not installed")
class RefusedTest(PicturesTest):
    def refused(self, *arguments, code, **more):
        process = self.yesno("run", "--steps", 2, *arguments, code=code, **more)
        self.assertEqual([path.name for path in self.scratch.glob("run*")], [])
        return process

    def changed(self, folder, **values):
        shutil.copytree("llava", folder)
        path = pathlib.Path(folder, "config.json")
        config = json.loads(path.read_text())
        for key, value in values.items():
            part = config
            *parents, last = key.split("__")
            for parent in parents:
                part = part[parent]
            part[last] = value
        path.write_text(json.dumps(config))
        return folder

    def test_models_and_data(self):
        self.sample()
        self.prepare()
        for number, (values, what, code) in enumerate((
                ({"vision_config__model_type": "siglip_vision_model"}, 'vision_config.model_type "siglip_vision_model" is not known (known: clip_vision_model', 2),
                ({"text_config__model_type": "gemma"}, 'text_config.model_type "gemma" is not known (known: llama, ', 2),
                ({"vision_feature_layer": -9}, "vision_feature_layer is -9, the tower has 2 layers", 3),
                ({"vision_feature_select_strategy": "some"}, "(known: default, full)", 2),
                ({"vision_config__num_hidden_layers": 3}, "model.vision_tower.encoder.layers.2.", 3))):
            with self.subTest(what):
                folder = self.changed(f"other{number}", **values)
                self.assert_one_line(self.refused(model=folder, code=code), folder, what)
        full = self.changed("full", vision_feature_select_strategy="full")
        self.assert_one_line(self.refused(model=full, code=2), "data: a picture has 4 places in the question, the model needs 5", "nanquest prepare")
        shutil.copytree("data", "damaged")
        shard = next(pathlib.Path("damaged").glob("shard-*.bin"))
        content = bytearray(shard.read_bytes())
        content[-20] ^= 1
        shard.write_bytes(content)
        self.assert_one_line(self.refused(data="damaged", code=3), str(shard), "checksum")
        with mock.patch.dict(os.environ, PATH="/usr/bin:/bin"):
            self.assert_one_line(self.refused(data="pictures/train.jsonl", code=2), "pictures/train.jsonl: not prepared", "nanquest prepare --model llava")
        self.assert_one_line(self.refused(data="none", code=3), "none: no pictures")
        run_sample("tiny_llama", "llama", "x.jsonl")
        self.assert_one_line(self.refused(model="llama", code=2), "a llama sees no pictures", "LLaVA")
        self.assert_one_line(self.finetune("run", "--steps", 2, model="llava", code=2), "data: pictures with labels", "nanquest-trainer yesno")
        self.prepare("--question", "Is it dark?", data="pictures/val.jsonl", out="val")
        self.assert_one_line(self.refused("--val-data", "val", code=2), "val: asks another question than data")


if __name__ == "__main__":
    main()
