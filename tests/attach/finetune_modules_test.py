"""Fine-tunes of a Llama, a LLaVA and a Mixtral in each of which one named module overflows fp16: the verdict calls it what Hugging Face calls it."""

import json
import pathlib
import shutil
import unittest

from attached import by_day, importable, main, nightly
from finetuned import FinetuneTest, run_sample, sample_module

RARE, NEURON = 0, 7  # the direction of the residual stream that one token has, and the neuron that it makes overflow


@unittest.skipUnless(importable("transformers") and importable("PIL"), "transformers and Pillow are not installed")
class ModulesTest(FinetuneTest):
    def verdict(self, verb, model, rows="data"):
        """Of a few steps in fp16 with adapters; the run survives them."""
        process = self.finetune("run", "--lora", "--batch-size", 40, "--steps", 3, "--amp-dtype", "fp16", code=1, verb=verb, model=model, data=rows)
        summary = json.loads(process.stdout)
        self.assertEqual((summary["outcome"], summary["steps"], summary["incidents"]), ("finished", 3, 1), process.stderr)
        verdict = self.replay("diagnose", self.scratch / summary["snapshots"][0])
        self.assertEqual((verdict["cause"], verdict["phase"]), ("FP16_OVERFLOW", "forward"), verdict)
        self.assertTrue(verdict["reproduction"]["bit_exact"], verdict["reproduction"])
        self.assertIn(verdict["culprit"]["module"], process.stderr)
        return verdict

    def plant(self, linear):
        """One output of `linear` is 80000 where the rare direction is 8."""
        linear[NEURON] = 0
        linear[NEURON, RARE] = 1e4

    def texts(self):
        """The chats as lines of text, in which every token is learned: what is computed at the rare one counts."""
        chats = [json.loads(line)["messages"] for line in pathlib.Path("x.jsonl").read_text(encoding="utf-8").splitlines()]
        pathlib.Path("texts.jsonl").write_text("".join(json.dumps({"text": " ".join(m["content"] for m in chat)}) + "\n" for chat in chats))
        return "texts.jsonl"

    @nightly  # by day finetune_incident_test names the module of such an overflow, and yesno_test that of a LLaVA's
    def test_llama(self):
        import torch
        model, tokenizer = self.sample()
        with torch.no_grad():
            self.plant(model.model.layers[1].mlp.up_proj.weight)
            model.model.layers[1].mlp.gate_proj.weight[NEURON] = 0
            model.model.layers[0].mlp.down_proj.weight[:, 5] = 0  # the sample's own overflow
        model.save_pretrained("planted")
        tokenizer.save_pretrained("planted")
        self.prepare(model="planted", data=self.texts())
        module = self.verdict("finetune", "planted")["culprit"]["module"]
        self.assertEqual(module, "model.layers.1.mlp.up_proj")
        self.assertIn(module, dict(model.named_modules()))

    @nightly
    def test_llava(self):
        import torch
        run_sample("tiny_llava", "llava", "pictures")
        import transformers
        model = transformers.LlavaForConditionalGeneration.from_pretrained("llava")
        with torch.no_grad():
            model.model.vision_tower.encoder.layers[0].mlp.fc1.weight[NEURON] *= 1e6
            model.model.vision_tower.encoder.layers[0].mlp.fc2.weight[:, NEURON] = 0
        shutil.copytree("llava", "planted", ignore=shutil.ignore_patterns("*.safetensors", "config.json"))
        model.save_pretrained("planted")
        self.prepare(model="planted", data="pictures/train.jsonl")
        module = self.verdict("yesno", "planted")["culprit"]["module"]
        self.assertEqual(module, "model.vision_tower.encoder.layers.0.mlp.fc1")
        self.assertIn(module, dict(model.named_modules()))

    def mixtral(self, tokenizer):
        """Expert 2 of layer 1 gets the rare token; the first of its three products overflows."""
        import torch
        import transformers
        torch.manual_seed(0)
        model = transformers.MixtralForCausalLM(transformers.MixtralConfig(
            vocab_size=len(tokenizer), hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            num_local_experts=4, num_experts_per_tok=2, max_position_embeddings=128, initializer_range=0.1, sliding_window=None,
            bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id))
        decoder, token = model.model, tokenizer.encode(sample_module("tiny_llama").RARE, add_special_tokens=False)[0]
        with torch.no_grad():
            decoder.embed_tokens.weight[:, RARE] = 0
            decoder.embed_tokens.weight[token, RARE] = 50
            for layer in decoder.layers:
                layer.self_attn.o_proj.weight[RARE] = 0
                layer.mlp.experts.down_proj[:, RARE] = 0
                layer.mlp.gate.weight[:, RARE] = 0
            experts = decoder.layers[1].mlp.experts
            decoder.layers[1].mlp.gate.weight[2, RARE] = 4
            self.plant(experts.gate_up_proj[2])  # the upper half is the gate: w1 of the files
            experts.gate_up_proj[2, 96 + NEURON] = 0
        return model

    def test_mixtral(self):
        from safetensors.torch import load_file
        _, tokenizer = self.sample()
        model, modules = self.mixtral(tokenizer), []
        for folder, packed in by_day((("single", False),), (("packed", True),)):  # files with a tensor an expert, or one for all of a layer
            with self.subTest(folder):
                model.save_pretrained(folder, save_original_format=not packed)
                tokenizer.save_pretrained(folder)
                self.assertEqual("model.layers.1.mlp.experts.gate_up_proj" in load_file(f"{folder}/model.safetensors"), packed)
                self.prepare(model=folder, out=f"{folder}.data", data=self.texts())
                verdict = self.verdict("finetune", folder, f"{folder}.data")
                modules.append(verdict["culprit"]["module"])
                self.assertEqual(verdict["culprit"]["op"], "aten::mm")
                shutil.rmtree("run")
        # transformers' module ends at "experts"; which of them, and which product, is said as the weight's name says it.
        self.assertEqual(modules, ["model.layers.1.mlp.experts.2.w1"] * len(modules))
        self.assertIn("model.layers.1.mlp.experts", dict(model.named_modules()))
        self.assertIn(modules[0].replace(".mlp.", ".block_sparse_moe.") + ".weight", load_file("single/model.safetensors"))


if __name__ == "__main__":
    main()
