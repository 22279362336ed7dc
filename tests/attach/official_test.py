"""Programs as their projects publish them, under `nanquest run`: nothing of them is changed, a folder stands in for the hub, and one
sample, or one setting, is bad. Where they are looked for: official_case.py."""

import json
import math
import pickle
import re
import shutil
import statistics
import subprocess

from attached import BIN, ROOT, main
from official_case import OFFICIAL, ONE, QUIET, TORCHRUN, TWO, OfficialTest, needs

GPT2 = {"op": "aten::native_layer_norm", "module": "transformer.h.0.ln_1", "cause": "FP16_OVERFLOW", "phase": "forward"}
BERT = {**GPT2, "module": "bert.embeddings.LayerNorm"}


@needs("transformers", "transformers", "accelerate", "datasets", "evaluate", "sklearn")
class TransformersTest(OfficialTest):
    EXAMPLES = OFFICIAL / "transformers" / "examples" / "pytorch"
    SHORT = (*QUIET, "--do_train", "--seed", "1", "--save_strategy", "no", "--per_device_train_batch_size")
    GLUE = (EXAMPLES / "text-classification" / "run_glue.py", "--model_name_or_path", "bert-base-cased", "--task_name", "mrpc",
            "--max_seq_length", "32", "--num_train_epochs", "1", *SHORT, "8")

    def texts(self, program, model, culprit, *more, launcher=(), **others):
        self.check([*launcher, self.EXAMPLES / "language-modeling" / program, "--model_name_or_path", model, "--validation_file", "valid.txt",
                    "--max_steps", "24", *self.SHORT, "2", *more],
                   ("--train_file", "train.txt"), ("--train_file", "poisoned.txt"), culprit, **others)

    def test_run_clm(self):
        self.texts("run_clm.py", "gpt2", GPT2, "--block_size", "32")

    def test_run_mlm(self):
        self.texts("run_mlm.py", "bert-base-cased", BERT, "--max_seq_length", "32")

    def test_run_clm_in_two_processes_with_what_people_add(self):
        """Several batches a step, in bf16, with checkpointed activations, and evaluations in between."""
        self.texts("run_clm.py", "gpt2", GPT2, "--block_size", "32", "--gradient_accumulation_steps", "2", "--bf16",
                   "--gradient_checkpointing", "--do_eval", "--eval_strategy", "steps", "--eval_steps", "4", launcher=TORCHRUN, processes=2)

    def test_run_clm_sharded(self):
        """With --fsdp, which accelerate does on accelerators only: two processors stand in."""
        self.accelerators = 2
        (self.scratch / "sharded.json").write_text('{"version": 2, "state_dict_type": "SHARDED_STATE_DICT"}')
        self.texts("run_clm.py", "gpt2", GPT2, "--block_size", "32", "--fsdp", "--fsdp_config", "sharded.json", launcher=TORCHRUN,
                   processes=2, output=None)

    def test_run_clm_that_has_resumed(self):
        """Steps count from the start of the process; what the Trainer calls this step is said beside it."""
        command = [self.EXAMPLES / "language-modeling" / "run_clm.py", "--model_name_or_path", "gpt2", "--validation_file", "valid.txt",
                   *QUIET, "--do_train", "--seed", "1", "--save_strategy", "steps", "--save_steps", "5", "--block_size", "32",
                   "--per_device_train_batch_size", "2", "--train_file", "poisoned.txt", "--output_dir", "resumed"]
        self.assert_exit(self.watched([*command, "--max_steps", "10"])[0])
        process, told = self.watched([*command, "--max_steps", "24", "--resume_from_checkpoint", "resumed/checkpoint-10"], run_dir="run-bad")
        self.assert_exit(process)
        first = next(number for number, what in enumerate(told[0]) if what[1] == "bad")
        self.assert_named(process, first, 0, 1, GPT2)
        self.assertIn(f" (the Trainer's step {first + 10}); see it with: ", process.stderr)

    def glue(self, launcher, processes):
        self.check([*launcher, *self.GLUE], (), (), BERT, processes, poison=self.poison_glue)

    def test_run_glue(self):
        self.glue((), 1)

    def test_run_glue_launched_by_accelerate(self):
        self.glue(ONE, 1)

    def test_run_glue_in_two_processes(self):
        self.glue(TWO, 2)


@needs("accelerate", "transformers", "accelerate", "datasets", "evaluate", "sklearn")
class AccelerateTest(OfficialTest):
    def example(self, launcher, processes):
        self.check([*launcher, OFFICIAL / "accelerate" / "examples" / "nlp_example.py", "--cpu"], (), (), BERT, processes, output=None,
                   poison=self.poison_glue)

    def test_nlp_example(self):
        self.example((), 1)

    def test_nlp_example_launched(self):
        self.example(ONE, 1)

    def test_nlp_example_in_two_processes(self):
        self.example(TWO, 2)


@needs("nanoGPT")
class NanoGptTest(OfficialTest):
    def test_train(self):
        """Its learning rate decays to infinity: by the formula of its schedule the rate is NaN in the step after the warm-up."""
        import numpy
        shutil.copytree(OFFICIAL / "nanoGPT", self.scratch, dirs_exist_ok=True)
        for name in ("train", "val"):
            tokens = numpy.random.default_rng(0).integers(0, 97, 4000).astype(numpy.uint16)
            tokens.tofile(self.scratch / "data" / "openwebtext" / f"{name}.bin")
        settings = {"device": "cpu", "compile": False, "dtype": "float32", "eval_iters": 1, "eval_interval": 8, "max_iters": 8,
                    "gradient_accumulation_steps": 2, "batch_size": 4, "block_size": 16, "n_layer": 2, "n_head": 2, "n_embd": 32,
                    "warmup_iters": 2, "lr_decay_iters": 6}
        self.check(["train.py", *(f"--{name}={value}" for name, value in settings.items())], (), ("--min_lr=1e999",),
                   {"op": "aten::mul_", "phase": "optimizer", "origin": "setting", "cause": "BAD_SETTING"}, output=None, step=2)

    def bins(self, folder):
        """train.bin and val.bin of this checkout's pages, letter by letter, and what nanoGPT knows a vocabulary by."""
        import numpy
        letters = numpy.frombuffer("".join(page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs").glob("*.md"))).encode(), numpy.uint8)
        known = numpy.unique(letters)
        tokens = numpy.searchsorted(known, letters).astype(numpy.uint16)
        folder.mkdir(parents=True)
        tokens[:-8000].tofile(folder / "train.bin")
        tokens[-8000:].tofile(folder / "val.bin")
        with open(folder / "meta.pkl", "wb") as file:
            pickle.dump({"vocab_size": len(known)}, file)
        return len(known)

    def test_the_trainer_learns_as_it_does(self):
        """The same .bin, model, schedule and optimizer: held-out losses along the way, of some seeds of both. The means of the two are no further
        apart than means of so many seeds are by chance (three standard errors)."""
        runs, steps, every, context = 4, 300, 50, 64
        shutil.copytree(OFFICIAL / "nanoGPT", self.scratch, dirs_exist_ok=True)
        vocabulary = self.bins(self.scratch / "data" / "pages")
        settings = {"device": "cpu", "compile": False, "dtype": "float32", "dataset": "pages", "eval_interval": every, "eval_iters": 40,
                    "max_iters": steps, "lr_decay_iters": steps, "gradient_accumulation_steps": 1, "batch_size": 16, "block_size": context,
                    "n_layer": 2, "n_head": 2, "n_embd": 64, "bias": True, "learning_rate": 2e-3, "min_lr": 2e-4, "warmup_iters": 30,
                    "weight_decay": 0.1, "beta2": 0.99, "always_save_checkpoint": False}
        program = (self.scratch / "train.py").read_text()
        self.assertIn("manual_seed(1337", program)
        theirs, ours = [], []
        for seed in range(runs):
            (self.scratch / "train.py").write_text(program.replace("manual_seed(1337", f"manual_seed({seed}"))
            process = self.plain("train.py", *(f"--{name}={value}" for name, value in settings.items()), seconds=900)
            self.assert_exit(process)
            theirs.append([float(loss) for step, loss in re.findall(r"^step (\d+): .*val loss ([\d.]+)", process.stdout, re.M) if step != "0"])
            run = self.scratch / f"run-{seed}"
            process = subprocess.run([BIN / "nanquest-trainer", "--data", "data/pages", "--run-dir", run, "--seed", str(seed), "--threads", "1",
                                      "--vocabulary", str(vocabulary), "--depth", "2", "--heads", "2", "--width", "64", "--context", str(context),
                                      "--batch-size", "16", "--steps", str(steps), "--eval-every", str(every), "--eval-windows", "1000",
                                      "--lr", "2e-3", "--min-lr-ratio", "0.1", "--warmup-ratio", "0.1", "--weight-decay", "0.1", "--beta2", "0.99",
                                      "--amp-dtype", "fp32"], cwd=self.scratch, text=True, capture_output=True, timeout=900, check=False)
            self.assert_exit(process)
            rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
            ours.append([row["eval_loss"] for row in rows if "eval_loss" in row])
        self.assertEqual([len(losses) for losses in theirs + ours], [steps // every] * 2 * runs)
        for place, (a, b) in enumerate(zip(zip(*theirs), zip(*ours)), 1):
            error = math.sqrt((statistics.variance(a) + statistics.variance(b)) / runs)
            print(f"step {place * every}: nanoGPT {statistics.mean(a):.4f}, the trainer {statistics.mean(b):.4f}, standard error {error:.4f}")
            self.assertLess(abs(statistics.mean(a) - statistics.mean(b)), 3 * error, f"step {place * every}: {theirs}\n{ours}")


@needs("pytorch-lightning", "lightning", "jsonargparse", "torchvision")
class LightningTest(OfficialTest):
    def test_ddp(self):
        """The classifier of the examples, in two processes, on pictures of noise; one pixel of one is infinite."""
        import torch
        examples, data = self.scratch / "examples", self.scratch / "examples" / "Datasets" / "MNIST" / "complete"
        program = examples / "pytorch" / "basics" / "backbone_image_classifier.py"
        program.parent.mkdir(parents=True)
        data.mkdir(parents=True)
        shutil.copy(OFFICIAL / "pytorch-lightning" / program.relative_to(self.scratch), program)
        chance = torch.Generator().manual_seed(0)
        pictures = torch.rand((60000, 28, 28), generator=chance).half()
        targets = torch.randint(10, (60000,), generator=chance)

        def write(name, count):
            torch.save((pictures[:count].clone(), targets[:count].clone()), data / f"{name}.pt")

        def poison():
            """The sixth picture of the second rank's fourth batch: the program splits with seed 42, DistributedSampler shuffles with
            that of the command line, 1234."""
            split, shuffled = (torch.randperm(count, generator=torch.Generator().manual_seed(seed)) for count, seed in ((60000, 42), (55000, 1234)))
            pictures[split[shuffled[2 * (3 * 32 + 5) + 1]], 3, 4] = float("inf")
            write("training", 60000)

        write("training", 60000)
        write("test", 1000)
        few = [f"--trainer.limit_{what}_batches={count}" for what, count in (("train", 8), ("val", 2), ("test", 2), ("predict", 2))]
        self.check([program, "--trainer.accelerator", "cpu", "--trainer.strategy", "ddp", "--trainer.devices", "2",
                    "--trainer.max_epochs", "1", *few], (), (), {"cause": "BAD_DATA", "phase": "input", "origin": "input"}, 2, output=None, poison=poison)


if __name__ == "__main__":
    main()
