"""Models of Hugging Face folders in C++ compared with transformers and PEFT: small random ones of every family and rope type.

NANQUEST_NIGHTLY=1: several random configurations of each.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), os.environ.get("NANQUEST_TEST_PACKAGES", "")]
os.environ["HF_HUB_OFFLINE"] = "1"

try:
    import peft
    import transformers
except ImportError:
    print("skipped: transformers and peft are not installed (cmake/requirements-models.txt)")
    sys.exit(77)
import torch
from safetensors.torch import load_file, save_file

import models

transformers.utils.logging.disable_progress_bar()

WORKER = os.environ["NANQUEST_TEST_WORKER"]
SEEDS = range(5) if os.environ.get("NANQUEST_NIGHTLY") == "1" else range(1)
LR, STEPS, BATCH, TIME = 1e-3, 10, 3, 21
LOGITS, GRADIENTS, LOSSES = 1e-5, 2e-4, 2e-4

torch.set_num_threads(1)


def far(a, b):
    """The relative distance of `a` from `b`, over all elements."""
    a, b = a.double(), b.double()
    return ((a - b).norm() / (b.norm() + 1e-30)).item()


def logits_of(model, tokens, **more):
    with torch.no_grad():
        return model(input_ids=tokens, use_cache=False, **more).logits


def trained(model, windows, **more):
    """Gradients of the first window by name, and the losses of a step of AdamW on each."""
    weights = {n: p for n, p in model.named_parameters() if p.requires_grad}
    groups = [{"params": [p for p in weights.values() if p.dim() >= 2], "weight_decay": 0.1},
              {"params": [p for p in weights.values() if p.dim() < 2], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=LR)
    gradients, losses = {}, []
    for window in windows:
        logits = model(input_ids=window[:, :-1], use_cache=False, **more).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), window[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        losses.append(loss.item())
        gradients = gradients or {n: p.grad.clone() for n, p in weights.items() if p.grad is not None}
        optimizer.step()
    return gradients, torch.tensor(losses, dtype=torch.float64)


def of_experts(name, gradient):
    """Parts of Mixtral's weights that hold all experts, named as in files and in the worker."""
    if not name.endswith((".experts.gate_up_proj", ".experts.down_proj")):
        return [(name, gradient)]
    where = name[:name.rindex(".")]
    if name.endswith("down_proj"):
        return [(f"{where}.{n}.w2.weight", part) for n, part in enumerate(gradient)]
    return [(f"{where}.{n}.w{1 if half == 0 else 3}.weight", part.chunk(2)[half]) for n, part in enumerate(gradient) for half in (0, 1)]


class Bench:
    """Cases that one start of the worker computes."""

    def __init__(self, folder):
        self.folder, self.cases = folder, []

    def add(self, name, folder, inputs, **more):
        inputs_file = self.folder / f"{name}.inputs.safetensors"
        save_file({k: v.contiguous() for k, v in inputs.items()}, inputs_file)
        self.cases.append({"name": name, "folder": str(folder), "inputs": str(inputs_file),
                           "results": str(self.folder / f"{name}.results.safetensors"),
                           **{k: str(v) if isinstance(v, pathlib.Path) else v for k, v in more.items()}})

    def run(self):
        file = self.folder / "cases.json"
        file.write_text(json.dumps(self.cases))
        ended = subprocess.run([WORKER, str(file)], text=True, capture_output=True)
        if ended.returncode:
            raise AssertionError(ended.stderr)

    def results(self, name):
        return load_file(self.folder / f"{name}.results.safetensors")


class ReferenceTest(unittest.TestCase):

    def setUp(self):
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="nanquest-huggingface-"))
        self.addCleanup(shutil.rmtree, self.scratch, ignore_errors=True)
        self.bench = Bench(self.scratch)
        torch.manual_seed(11)
        self.inputs = {"tokens": torch.randint(0, models.VOCABULARY, (BATCH, TIME)),
                       "windows": torch.randint(0, models.VOCABULARY, (STEPS, BATCH, TIME + 1))}
        # Its row in the table gets no gradient from lookups.
        self.inputs["windows"][0, :, 4] = models.PADDING

    def near(self, a, b, most, what):
        self.assertEqual(a.shape, b.shape, what)
        self.assertLess(far(a, b), most, what)

    def compare(self, name, model, prefix="", inputs=None):
        """Compares the worker's results with those of `model`; trains it."""
        found, inputs = self.bench.results(name), inputs or self.inputs
        more = {"pixel_values": inputs["pixels"]} if "pixels" in inputs else {}
        self.near(found["logits"], logits_of(model, inputs["tokens"], **more), LOGITS, f"{name}: logits")
        model.train()
        gradients, losses = trained(model, inputs["windows"], **more)
        model.eval()
        names = {n.removeprefix(prefix).replace(".default", ""): g for n, g in gradients.items()}
        names = dict(part for named in names.items() for part in of_experts(*named))
        self.assertEqual(set(names), {n[5:] for n in found if n.startswith("grad.")}, name)
        for n, gradient in names.items():
            if n.endswith("k_proj.bias") and "vision_tower" in n:
                # Added equally to all scores of a query if no angle depends on the position: zero except for rounding.
                most = 1e-5 * names[n.replace("k_proj", "q_proj")].norm()
                self.assertLess(max(found["grad." + n].norm(), gradient.norm()), most, n)
                continue
            self.near(found["grad." + n], gradient, GRADIENTS, f"{name}: gradient of {n}")
        worst = ((found["losses"] - losses).abs() / losses).max().item()
        self.assertLess(worst, LOSSES, f"{name}: losses {found['losses']} and {losses}")
        self.near(found["logits_after"], logits_of(model, inputs["tokens"], **more), 1e-3, f"{name}: after ten steps")
        return found

    def loaded(self, folder, dtype="auto"):
        return transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager", dtype=dtype).eval()

    def test_every_family_and_rope_type(self):
        made = {}
        for seed in SEEDS:
            for name, config in models.configurations(seed).items():
                name = f"{name}.{seed}"
                made[name] = models.make(config, seed)
                folder = self.scratch / name
                shard = {"max_shard_size": "20KB"} if name.startswith(("llama_yarn.", "gemma2.")) else {}
                made[name].save_pretrained(folder, **shard)
                self.assertEqual((folder / "model.safetensors.index.json").exists(), bool(shard), name)
                more = {"checkpointing": True} if "window" in name or "gpt2." in name else {}
                self.bench.add(name, folder, self.inputs, save=self.scratch / f"{name}.saved",
                               written="biases" in name, **more)
        self.bench.run()
        for name, model in made.items():
            found = self.compare(name, model)
            again = self.loaded(self.scratch / f"{name}.saved")
            self.near(logits_of(again, self.inputs["tokens"]), found["logits_after"], LOGITS, f"{name}: saved")
            self.assertEqual(set(again.state_dict()), set(model.state_dict()), name)

    def test_experts_of_a_layer_in_one_tensor(self):
        """As transformers 5 holds them in memory and writes them on request; saved in the same form, whole or adapted, in one file
        or shards."""
        config = models.configurations(8)["mixtral"]
        model = models.make(config, 8)
        for name, more in (("packed", {}), ("shards", {"max_shard_size": "20KB"})):
            model.save_pretrained(self.scratch / name, save_original_format=False, **more)
            self.bench.add(name, self.scratch / name, self.inputs, save=self.scratch / f"{name}.saved")
        model.bfloat16().save_pretrained(self.scratch / "half", save_original_format=False)
        self.bench.add("adapted", self.scratch / "half", self.inputs, lora={"r": 3, "alpha": 12}, save=self.scratch / "adapted.saved")
        self.bench.run()
        for name in ("packed", "shards"):
            found = self.compare(name, self.loaded(self.scratch / name))
            saved = load_file(self.scratch / f"{name}.saved" / "model.safetensors")
            self.assertEqual(set(saved), set(model.state_dict()), "called as they were")
            self.near(logits_of(self.loaded(self.scratch / f"{name}.saved"), self.inputs["tokens"]), found["logits_after"], LOGITS, f"{name}: saved")
        # Frozen weights have the same bytes, in their original format.
        saved, came = (load_file(self.scratch / name / "model.safetensors") for name in ("adapted.saved", "half"))
        self.assertEqual(set(saved), set(came))
        experts = [name for name in came if ".experts." in name]
        self.assertEqual(len(experts), 2 * config.num_hidden_layers)
        for name in experts:
            self.assertEqual(saved[name].dtype, torch.bfloat16)
            self.assertTrue(torch.equal(saved[name], came[name]), name)
        self.near(logits_of(self.loaded(self.scratch / "adapted.saved", torch.float32), self.inputs["tokens"]),
                  self.bench.results("adapted")["logits_after"], LOGITS, "merged")

    def test_files_of_earlier_versions(self):
        """rope_theta beside rope_scaling, weights without their first part, masks and tables among them."""
        config = models.configurations(3)["llama_llama3"]
        model = models.make(config, 3)
        folder = self.scratch / "llama"
        model.save_pretrained(folder)
        text = json.loads((folder / "config.json").read_text())
        rope = text.pop("rope_parameters")
        text["rope_theta"] = rope.pop("rope_theta")
        rope["type"] = rope.pop("rope_type")
        text["rope_scaling"] = rope
        text["torch_dtype"] = text.pop("dtype", "float32")
        (folder / "config.json").write_text(json.dumps(text))
        weights = load_file(folder / "model.safetensors")
        weights["model.layers.0.self_attn.rotary_emb.inv_freq"] = torch.ones(4)
        save_file(weights, folder / "model.safetensors")
        gpt = models.make(models.configurations(3)["gpt2"], 3)
        gpt_folder = self.scratch / "gpt2"
        gpt.save_pretrained(gpt_folder)
        weights = {n.removeprefix("transformer."): w for n, w in load_file(gpt_folder / "model.safetensors").items()}
        weights["h.0.attn.bias"] = torch.ones(1, 1, 48, 48).tril()
        save_file(weights, gpt_folder / "model.safetensors")
        self.bench.add("llama", folder, self.inputs)
        self.bench.add("gpt2", gpt_folder, self.inputs, save=self.scratch / "saved")
        self.bench.run()
        self.compare("llama", model)
        self.compare("gpt2", gpt)
        self.near(logits_of(self.loaded(self.scratch / "saved"), self.inputs["tokens"]),
                  self.bench.results("gpt2")["logits_after"], LOGITS, "saved")

    def test_texts_packed_into_a_row_see_themselves_alone(self):
        lengths = [5, 9, 7]
        tokens = self.inputs["tokens"][:1]
        packed = {"tokens": tokens, "positions": torch.cat([torch.arange(n) for n in lengths])[None],
                  "texts": torch.cat([torch.full((n,), i) for i, n in enumerate(lengths)])[None]}
        made = {}
        for name in ("llama_default", "mistral_window", "gemma3", "gpt2"):
            made[name] = models.make(models.configurations(5)[name], 5)
            made[name].save_pretrained(self.scratch / name)
            self.bench.add(name, self.scratch / name, packed)
        self.bench.run()
        for name, model in made.items():
            alone = torch.cat([logits_of(model, part) for part in tokens.split(lengths, 1)], 1)
            self.near(self.bench.results(name)["logits"], alone, LOGITS, name)

    def test_adapters_of_peft_and_ours(self):
        made = {}
        for seed in SEEDS:
            for name, targets in (("llama_default", ["q_proj", "v_proj"]), ("qwen2", "all-linear"),
                                  ("gemma2", ["o_proj", "down_proj"]), ("gpt2", ["c_attn", "mlp.c_proj"])):
                name = f"{name}.{seed}"
                made_here = models.make(models.configurations(seed)[name.split(".")[0]], seed)
                made_here.bfloat16().save_pretrained(self.scratch / name)  # frozen weights keep their own format
                # Loaded again, because bfloat16() has also rounded the tables of angles, which are not weights.
                base = self.loaded(self.scratch / name, torch.float32)
                adapted = peft.get_peft_model(base, peft.LoraConfig(
                    r=4, lora_alpha=6, lora_dropout=0.0, target_modules=targets, task_type="CAUSAL_LM",
                    use_rslora="qwen2" in name, fan_in_fan_out="gpt2" in name))
                with torch.no_grad():
                    for n, p in adapted.named_parameters():
                        if "lora_B" in n:
                            p.normal_(0, 0.2)
                adapted.save_pretrained(self.scratch / f"{name}.theirs")
                made[name] = adapted
                self.bench.add(name, self.scratch / name, self.inputs, adapter=self.scratch / f"{name}.theirs",
                               save_adapter=self.scratch / f"{name}.ours", save=self.scratch / f"{name}.merged",
                               checkpointing="llama" in name)
        self.bench.run()
        for name, adapted in made.items():
            found = self.compare(name, adapted, "base_model.model.")
            base = self.loaded(self.scratch / name, torch.float32)
            again = peft.PeftModel.from_pretrained(base, self.scratch / f"{name}.ours").eval()
            self.near(logits_of(again, self.inputs["tokens"]), found["logits_after"], LOGITS, f"{name}: ours in PEFT")
            merged = self.loaded(self.scratch / f"{name}.merged")
            self.assertEqual(merged.dtype, torch.float32, name)
            self.near(logits_of(merged, self.inputs["tokens"]), found["logits_after"], LOGITS, f"{name}: merged")

    def with_images(self, config):
        """The inputs, with an image in each row; in one row its tokens are at another place."""
        number = models.image_tokens(config)
        inputs = {"pixels": torch.randn(BATCH, 3, 12, 12), **{name: self.inputs[name].clone() for name in ("tokens", "windows")}}
        for tokens in (inputs["tokens"], *inputs["windows"]):
            tokens[tokens == models.IMAGE] = 1
            for row, begin in enumerate((1, 1, 4)):
                tokens[row, begin:begin + number] = models.IMAGE
        return inputs

    def llava(self, folder, dtype="auto"):
        return transformers.LlavaForConditionalGeneration.from_pretrained(folder, attn_implementation="eager", dtype=dtype).eval()

    def test_llava(self):
        made, inputs = {}, {}
        for seed in SEEDS:
            for name, config in models.llavas(seed).items():
                name = f"{name}.{seed}"
                inputs[name], made[name] = self.with_images(config), models.make(config, seed)
                made[name].save_pretrained(self.scratch / name)
                self.bench.add(name, self.scratch / name, inputs[name], save=self.scratch / f"{name}.saved", written="full" in name,
                               checkpointing="mistral" in name)
        self.bench.run()
        for name, model in made.items():
            found = self.compare(name, model, inputs=inputs[name])
            again = self.llava(self.scratch / f"{name}.saved")
            self.assertEqual(set(again.state_dict()), set(model.state_dict()), name)
            logits = logits_of(again, inputs[name]["tokens"], pixel_values=inputs[name]["pixels"])
            self.near(logits, found["logits_after"], LOGITS, f"{name}: saved")
            files = [set(load_file(self.scratch / folder / "model.safetensors")) for folder in (name, f"{name}.saved")]
            self.assertEqual(files[0], files[1], "called as they were")

    def test_llava_of_earlier_versions(self):
        """Weights named as in the first published ones; config_test.cpp has a config that leaves out usual values."""
        model = models.make(models.llavas(4)["llava"], 4)
        model.save_pretrained(self.scratch / "base")
        inputs = self.with_images(model.config)
        weights = load_file(self.scratch / "base" / "model.safetensors")
        names = {"first": lambda n: n.replace("vision_tower.", "vision_tower.vision_model."),
                 "second": lambda n: {"language_model.lm_head.weight": "lm_head.weight"}.get(n, "model." + n.replace(
                     "language_model.model.", "language_model.").replace("vision_tower.", "vision_tower.vision_model."))}
        for name, renamed in names.items():
            shutil.copytree(self.scratch / "base", self.scratch / name)
            old = {renamed(n): w for n, w in weights.items()}
            self.assertEqual("lm_head.weight" in old, name == "second")
            save_file({**old, ("model." if name == "second" else "") + "vision_tower.vision_model.embeddings.position_ids": torch.arange(10)[None]},
                      self.scratch / name / "model.safetensors")
            self.bench.add(name, self.scratch / name, {n: inputs[n] for n in ("tokens", "pixels")}, last=2, save=self.scratch / f"{name}.saved")
        self.bench.run()
        wanted = logits_of(model, inputs["tokens"], pixel_values=inputs["pixels"])[:, -2:]
        for name in names:
            self.near(self.bench.results(name)["logits"], wanted, LOGITS, name)
            saved = load_file(self.scratch / f"{name}.saved" / "model.safetensors")
            self.assertEqual(set(saved), {names[name](n) for n in weights})
            self.near(logits_of(self.llava(self.scratch / f"{name}.saved"), inputs["tokens"], pixel_values=inputs["pixels"])[:, -2:], wanted,
                      LOGITS, f"{name}: saved")

    def test_llava_with_adapters(self):
        model = models.make(models.llavas(6)["llava"], 6)
        model.bfloat16().save_pretrained(self.scratch / "base")  # frozen weights keep their own format
        inputs = self.with_images(model.config)
        adapted = peft.get_peft_model(self.llava(self.scratch / "base", torch.float32), peft.LoraConfig(
            r=4, lora_alpha=6, lora_dropout=0.0, task_type="CAUSAL_LM",
            target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj", "fc1", "fc2", "out_proj"]))
        with torch.no_grad():
            for n, p in adapted.named_parameters():
                if "lora_B" in n:
                    p.normal_(0, 0.2)
        adapted.save_pretrained(self.scratch / "theirs")
        self.bench.add("lora", self.scratch / "base", inputs, adapter=self.scratch / "theirs", save_adapter=self.scratch / "ours",
                       save=self.scratch / "merged", checkpointing=True)
        self.bench.run()
        found = self.compare("lora", adapted, "base_model.model.", inputs)
        self.assertIn("grad.model.vision_tower.encoder.layers.1.mlp.fc2.lora_A.weight", found)
        self.assertNotIn("grad.model.vision_tower.encoder.layers.2.mlp.fc2.lora_A.weight", found, "what it computes is not looked at")
        more = {"pixel_values": inputs["pixels"]}
        again = peft.PeftModel.from_pretrained(self.llava(self.scratch / "base", torch.float32), self.scratch / "ours").eval()
        self.near(logits_of(again, inputs["tokens"], **more), found["logits_after"], LOGITS, "ours in PEFT")
        self.assertEqual(set(load_file(self.scratch / "ours" / "adapter_model.safetensors")),
                         set(load_file(self.scratch / "theirs" / "adapter_model.safetensors")))
        self.near(logits_of(self.llava(self.scratch / "merged"), inputs["tokens"], **more), found["logits_after"], LOGITS, "merged")

    def test_fresh_adapters_begin_as_the_model(self):
        model = models.make(models.configurations(7)["mistral"], 7)
        model.save_pretrained(self.scratch / "base")
        self.bench.add("fresh", self.scratch / "base", {"tokens": self.inputs["tokens"]}, lora={"r": 3, "alpha": 12},
                       save_adapter=self.scratch / "ours", save=self.scratch / "rounded", format="bf16")
        self.bench.run()
        self.near(self.bench.results("fresh")["logits"], logits_of(model, self.inputs["tokens"]), LOGITS, "fresh")
        again = peft.PeftModel.from_pretrained(model, self.scratch / "ours")
        config = again.peft_config["default"]
        self.assertEqual((config.r, config.lora_alpha, set(config.target_modules)), (3, 12, {"q_proj", "v_proj"}))
        self.assertEqual(self.loaded(self.scratch / "rounded").dtype, torch.bfloat16)

    def test_small_files_go_with_the_model(self):
        model = models.make(models.configurations(7)["qwen3"], 7)
        folder = self.scratch / "base"
        model.save_pretrained(folder)
        (folder / "tokenizer.json").write_text('{"version": "1.0"}')
        (folder / "notes.bin").write_text("not a part of it")
        self.bench.add("model", folder, {"tokens": self.inputs["tokens"]}, save=self.scratch / "saved")
        self.bench.run()
        saved = {f.name for f in (self.scratch / "saved").iterdir()}
        self.assertLessEqual({"tokenizer.json", "config.json", "model.safetensors", "generation_config.json"}, saved)
        self.assertNotIn("notes.bin", saved)
        config = [(self.scratch / n / "config.json").read_text() for n in ("base", "saved")]
        self.assertEqual(config[0], config[1])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[1:])
