"""A fine-tune that overflows on one sample survives, replay names the module as Hugging Face does; and what is refused, in one line."""

import json
import pathlib
import shutil
import unittest

from attached import importable, main
from finetuned import TRAINER, FinetuneTest

SMALL = ("--batch-size", 8, "--steps", 36)


@unittest.skipUnless(importable("transformers"), "transformers is not installed")
class FinetuneIncidentTest(FinetuneTest):
    def run_and_replay(self, *options):
        """The sample's fine-tune in fp16 with a policy: (summary, its first incident's verdict)."""
        self.sample()
        self.prepare()
        process = self.finetune("run", *SMALL, "--lr", 1e-3, "--amp-dtype", "fp16", *options, code=1)
        summary = json.loads(process.stdout)
        self.assertEqual(summary["outcome"], "finished", process.stderr)
        self.assertEqual(summary["steps"], 36)
        verdict = self.replay("diagnose", self.scratch / summary["snapshots"][0])
        self.assertEqual(verdict["cause"], "FP16_OVERFLOW", verdict)
        self.assertEqual((verdict["culprit"]["module"], verdict["culprit"]["op"], verdict["phase"]),
                         ("model.layers.0.mlp.down_proj", "aten::mm", "forward"))
        self.assertTrue(verdict["reproduction"]["bit_exact"], verdict["reproduction"])
        self.assertEqual(verdict["precision"]["fp32"], "finite")
        self.assertTrue(verdict["fix"]["verified"], verdict["fix"])
        return process, summary, verdict

    def rare(self):
        """The row that overflows, by its id."""
        lines = pathlib.Path("x.jsonl").read_text(encoding="utf-8").splitlines()
        return f"x.jsonl:{next(n for n, line in enumerate(lines, 1) if 'ж' in line)}"

    def test_lora_skips_the_batch_and_goes_on(self):
        process, summary, _ = self.run_and_replay("--lora", "--on-incident", "skip", "--quarantine", "ids.txt")
        self.assertEqual((summary["incidents"], summary["skipped"]), (1, 1))
        self.assertIn("model.layers.0.mlp.down_proj", process.stderr)
        self.assertIn(self.rare(), summary["skipped_samples"])
        self.assertIn(self.rare(), pathlib.Path("ids.txt").read_text())
        self.assertTrue((self.scratch / "run" / "checkpoints" / "adapter" / "adapter_model.safetensors").exists())

    def test_a_whole_model_falls_back_to_fp32_and_learns_from_the_batch(self):
        _, summary, _ = self.run_and_replay("--on-incident", "fallback_fp32", "--seed", 4)  # the batch comes as the fifteenth
        self.assertEqual((summary["incidents"], summary["skipped"], summary["fell_back"], summary["precision"]), (1, 0, True, "fp32"))
        self.assertLess(summary["loss"]["end"], summary["loss"]["start"])
        import transformers
        self.assertEqual(str(transformers.AutoModelForCausalLM.from_pretrained("run/checkpoints/model").dtype), "torch.float32")
        rehearsal = self.trainer("rehearse", "run", "--json", "--placebos", 3, "--steps", 20, "--set", "precision=fp32", "--set", "lr=*0.1")
        tried = {run["change"]: run for run in json.loads(rehearsal.stdout)["runs"]}
        self.assertTrue(tried["precision=fp32"]["cures"], tried)

    def test_a_disk_too_small_for_an_incident_is_told_and_survived(self):
        """No file may be larger than 600 KB, and the incident's is; those of the run and of what is learned are not."""
        self.sample()
        self.prepare()
        process = self.finetune("run", "--lora", "--frozen-weights", "embed", "--batch-size", 8, "--steps", 3, "--inject", "nan-loss@1", code=1,
                                by=("bash", "-c", 'ulimit -f 600; exec "$@"', "-", str(TRAINER)))
        told = [line for line in process.stderr.splitlines() if "not written" in line]
        self.assertEqual(len(told), 1, process.stderr)
        for part in ("step 1 is not finite", "run/incidents/step-00000001.r0.h5: writing failed: File too large", "free some space there or choose another directory"):
            self.assertIn(part, told[0])
        self.assertEqual(list(pathlib.Path("run/incidents").iterdir()), [])
        summary = json.loads(process.stdout)
        self.assertEqual((summary["outcome"], summary["steps"], summary["incidents"], summary["snapshots"]), ("finished", 3, 1, []))
        self.assertTrue(pathlib.Path(summary["files"]["learned"], "adapter_model.safetensors").exists())


@unittest.skipUnless(importable("transformers"), "transformers is not installed")
class RefusedTest(FinetuneTest):
    def refused(self, *arguments, code, **more):
        """Refused in one line, and nothing stays of a run."""
        process = self.finetune("run", *SMALL, *arguments, code=code, **more)
        self.assertEqual([path.name for path in self.scratch.rglob("run*")], [])
        return process

    def changed(self, folder, **values):
        """A copy of the model whose config.json says these."""
        shutil.copytree("llama", folder)
        path = pathlib.Path(folder, "config.json")
        path.write_text(json.dumps({**json.loads(path.read_text()), **values}))
        return folder

    def test_models(self):
        self.sample()
        self.prepare()
        for number, (values, what, code) in enumerate((
                ({"model_type": "mamba"}, 'model_type "mamba" is not known (known: llama, ', 2), ({"hidden_act": "xielu"}, 'hidden_act "xielu" is not known (known: silu, ', 2),
                ({"rope_parameters": {"rope_type": "spiral", "rope_theta": 1e4}}, 'rope_type "spiral" is not known (known: default, ', 2),
                ({"num_hidden_layers": 3}, "model.layers.2.", 3), ({"intermediate_size": 64}, "mlp.", 3))):
            with self.subTest(what):
                folder = self.changed(f"other{number}", **values)
                self.assert_one_line(self.refused(model=folder, code=code), folder, what)
        with self.subTest("cut short"):
            self.changed("short")
            weights = pathlib.Path("short/model.safetensors")
            weights.write_bytes(weights.read_bytes()[:-1000])
            self.assert_one_line(self.refused(model="short", code=3), "short/model.safetensors")
        with self.subTest("no folder"):
            self.assert_one_line(self.refused(model="nothing", code=3), "nothing")
            self.assert_one_line(self.trainer("finetune", "--data", "data", code=2), "--model FOLDER")
            self.assert_one_line(self.trainer("finetune", "--model", "llama", code=2), "no data", "nanquest prepare --model llama --data FILE.jsonl --out DIR")
        with self.subTest("adapter"):
            self.assert_one_line(self.refused("--adapter", "llama", code=3), "adapter_config.json")
            self.assert_one_line(self.refused("--lora", "--lora-targets", "query", code=2), '"query"', "q_proj")
            self.assert_one_line(self.refused("--lora", "--lora-r", 0, code=2), "lora-r")
            for given in (("--lora-r", 4), ("--lora-alpha", 4), ("--lora-dropout", 0), ("--lora-targets", "q_proj")):
                self.assert_one_line(self.refused(*given, code=2), f"{given[0][2:]} without lora: all weights of the model would train", "give --lora")

    def test_data(self):
        _, tokenizer = self.sample()
        self.prepare()
        with self.subTest("another tokenizer"):
            shutil.copytree("llama", "other")
            path = pathlib.Path("other/tokenizer.json")
            path.write_text(path.read_text().replace('"<pad>"', '"<fill>"'))
            self.assert_one_line(self.refused(model="other", code=2), "data: made by another tokenizer than other/tokenizer.json", "nanquest prepare --model other")
        with self.subTest("a broken line"):
            pathlib.Path("x.jsonl").write_text('{"text": "one"}\n{"text": \n')
            said = self.prepare(out="broken", code=3)
            self.assertEqual(said.count("\n"), 1, said)
            self.assertIn("x.jsonl:2: not JSON", said)
            self.assert_one_line(self.refused(data="broken", code=2), "broken: no tokens", "nanquest prepare --model llama")
        with self.subTest("a damaged shard"):
            shutil.copytree("data", "damaged")
            shard = next(pathlib.Path("damaged").glob("shard-*.bin"))
            content = bytearray(shard.read_bytes())
            content[80] ^= 1
            shard.write_bytes(content)
            self.assert_one_line(self.refused(data="damaged", code=3), str(shard), "checksum")
        with self.subTest("text"):
            pathlib.Path("a.txt").write_text("one two three")
            self.assert_one_line(self.refused(data="a.txt", code=2), "a.txt", "nanquest prepare --model llama --data FILE.jsonl")
            self.assert_one_line(self.refused(data="none", code=3), "none")
        with self.subTest("tokens that the model has not"):
            pathlib.Path("x.bin").write_bytes(b"".join(n.to_bytes(2, "little") for n in [*range(len(tokenizer)), 9999] * 40))
            process = self.finetune("left-out", *SMALL, "--context", 16, data="x.bin", code=1)
            self.assertIn("tokens holds 9999 at", process.stderr)
            self.assertTrue(json.loads(process.stdout)["skipped_samples"])

    def test_what_an_earlier_run_learned_goes_along_with_it(self):
        self.sample()
        self.prepare()
        short = ("--batch-size", 8, "--steps", 2)
        first = json.loads(self.finetune("run", *short, "--lora").stdout)
        self.assertEqual(first["files"]["learned"], "run/checkpoints/adapter")
        kept = pathlib.Path("run/checkpoints/adapter/adapter_model.safetensors").read_bytes()
        self.assert_one_line(self.finetune("run", *short, "--adapter", "run/checkpoints/adapter", code=2), "run/checkpoints/adapter: is what", "--run-dir")
        process = self.finetune("run", *short)
        moved, = pathlib.Path("run/earlier").iterdir()
        self.assertEqual((moved / "checkpoints" / "adapter" / "adapter_model.safetensors").read_bytes(), kept)
        self.assertEqual(json.loads(process.stdout)["files"]["learned"], "run/checkpoints/model")
        self.assertFalse(pathlib.Path("run/checkpoints/adapter").exists())
        self.assert_one_line(self.finetune("run", *short, model="run/checkpoints/model", code=2), "run/checkpoints/model: is what")
        self.finetune("other", *short, "--adapter", moved / "checkpoints" / "adapter")

    def test_samples(self):
        self.sample()
        for prompt, what in (("1 x", "x is not one of 360 tokens"), ("1 360", "360 is not one of 360 tokens"), ("-1", "-1 is not one"), (" ", "without a token"),
                             ("1 " * 128, "128 tokens, the model bears 128")):
            self.assert_one_line(self.trainer("sample", "--model", "llama", "--tokens", prompt, code=2), what)
        self.assert_one_line(self.trainer("sample", code=2), "--model FOLDER")
        self.assert_one_line(self.trainer("sample", "--model", "llama", "--temperature", -1, "--tokens", 1, code=2), "temperature")
        self.assert_one_line(self.trainer("sample", "--model", "llama", "--adapter", "llama", "--tokens", 1, code=3), "adapter_config.json")


if __name__ == "__main__":
    main()
