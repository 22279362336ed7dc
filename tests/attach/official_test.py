"""Programs as their projects publish them, under `nanquest run`: nothing of them is changed, a folder stands in for the hub, and one
sample, or one setting, is bad.

They are looked for in the folder NANQUEST_OFFICIAL, else in `official` of the set-up's cache: checkouts of transformers, accelerate, nanoGPT
and pytorch-lightning, and a folder `packages` with what they need besides the test packages (datasets, evaluate, scikit-learn,
jsonargparse). What is not there is skipped, with the reason.
"""

import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from attached import HERE, PACKAGES, PackagesTest, main

CACHE = pathlib.Path(os.environ.get("NANQUEST_CACHE") or pathlib.Path.home() / ".cache" / "nanquest")
OFFICIAL = pathlib.Path(os.environ.get("NANQUEST_OFFICIAL") or CACHE / "official")
LAUNCH = ("-m", "accelerate.commands.launch", "--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no")
TWO = (*LAUNCH, "--multi_gpu", "--num_processes", "2")  # on CPUs, as the program is told; without MPI that is the way
ONE = (*LAUNCH, "--cpu", "--num_processes", "1")
QUIET = ("--report_to", "none", "--logging_steps", "1", "--use_cpu", "True", "--disable_tqdm", "True")


def needs(program, *packages):
    """Skips where a program or a package is not to be had."""
    if not (OFFICIAL / program).exists():
        return unittest.skip(f"{OFFICIAL / program} is not there")
    places = [OFFICIAL / "packages", pathlib.Path(PACKAGES or os.devnull)]
    missing = [name for name in packages if not any((place / name).exists() for place in places)]
    return unittest.skipIf(missing, f"{', '.join(missing)}: not in {OFFICIAL / 'packages'}, nor in NANQUEST_TEST_PACKAGES")


def steps_of(told):
    """What official/witness wrote, by update: (the losses before it, "well" or "bad" for its gradients)."""
    steps, losses = [], []
    for line in told.splitlines():
        if line.startswith("update "):
            steps.append((tuple(losses), line[7:]))
            losses = []
        else:
            losses.append(line)
    return steps


def finite(step):
    return all(math.isfinite(float.fromhex(loss)) for loss in step[0])


class OfficialTest(PackagesTest):
    hub = None
    home = "home"  # of what datasets prepares and finds again by its name alone

    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="nanquest-official-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared, ignore_errors=True)

    def setUp(self):
        super().setUp()
        if OfficialTest.hub is None or not OfficialTest.hub.exists():
            OfficialTest.hub = self.shared / "hub"
            made = subprocess.run([sys.executable, HERE / "official" / "hub.py", self.hub], text=True, capture_output=True,
                                  env=self.environment(), timeout=300)
            self.assert_exit(made)
        for entry in self.hub.iterdir():  # programs run in self.scratch, and find by name what they ask for
            (self.scratch / entry.name).symlink_to(entry)

    def poison_glue(self):
        """From here on the hub's MRPC is the one with a bad sample: the programs have its name written in them."""
        self.home = "home-poisoned"
        (self.scratch / "nyu-mll").unlink()
        (self.scratch / "nyu-mll").mkdir()
        (self.scratch / "nyu-mll" / "glue").symlink_to(self.hub / "glue-poisoned")

    def environment(self, **more):
        found = super().environment()
        found["PYTHONPATH"] = os.pathsep.join([found["PYTHONPATH"], str(OFFICIAL / "packages")])
        home = str(self.shared / self.home)
        return {**found, "HF_DATASETS_OFFLINE": "1", "HF_HOME": home, "TOKENIZERS_PARALLELISM": "false", "NO_COLOR": "1",
                "CUDA_VISIBLE_DEVICES": "", "PL_USE_MOCKED_MNIST": "1", **more}

    def watched(self, command, run_dir=None, witness=True):
        """The program alone, or under `nanquest run`: (process, {rank: what it tells of its steps})."""
        told = pathlib.Path(tempfile.mkdtemp(dir=self.shared))
        found = self.environment()
        if witness:
            path = os.pathsep.join([str(HERE / "official" / "witness"), found["PYTHONPATH"]])
            found = self.environment(PYTHONPATH=path, WITNESS=str(told))
        probe = ("-m", "nanquest", "run", "--run-dir", run_dir, "--", sys.executable) if run_dir else ()
        process = subprocess.run([sys.executable, *map(str, (*probe, *command))], cwd=self.scratch, text=True, capture_output=True,
                                 timeout=600, env=found)
        return process, {int(file.name[5:]): steps_of(file.read_text()) for file in told.iterdir()}

    def assert_same(self, one, other):
        """Two folders hold the same weights, byte for byte."""
        names = sorted(path.name for path in (self.scratch / one).iterdir() if path.suffix in (".safetensors", ".pt", ".ckpt"))
        self.assertTrue(names, f"no weights in {one}")
        for name in names:
            self.assertEqual((self.scratch / one / name).read_bytes(), (self.scratch / other / name).read_bytes(), name)

    def check(self, command, healthy, bad, culprit, processes=1, output="--output_dir", poison=lambda: None,
              step=None):
        """`command` with the healthy settings, then, after poison(), with the bad ones, each with and without the probe; `culprit`:
        what the verdict must say. The step and the rank are those that the program itself went bad at. `output`: the option for
        the folder that gets the weights; None if its losses are to be compared. `step`: where it is an update that goes bad first."""
        def tried(name, settings, **more):
            return self.watched([*command, *settings, *((output, name) if output else ())], **more)

        for name, settings in (("healthy", healthy), ("bad", bad)):
            if name == "bad":
                poison()
            alone, told = tried(f"{name}-alone", settings)
            seen, again = tried(f"{name}-seen", settings, run_dir=f"run-{name}", witness=output is None)
            self.assertEqual(seen.returncode, alone.returncode, seen.stderr)
            self.assertEqual(sorted(told), list(range(processes)), alone.stderr)
            if output:
                self.assert_same(f"{name}-alone", f"{name}-seen")
            else:
                self.assertEqual(again, told)
            if name == "healthy":
                self.assert_exit(alone)
                steps = len(told[0])
                self.assertTrue(all(finite(step) and step[1] == "well" for steps in told.values() for step in steps), told)
                extent = f"{steps} steps" if processes == 1 else f"{processes} processes of {steps} steps each"
                self.assertEqual(self.probes_lines(seen), [f"nanquest: no incident in {extent}"])
        first = next(number for number, what in enumerate(told[0]) if what[1] == "bad")
        bad = [rank for rank in told if not finite(told[rank][first])]  # none: only gradients are bad
        self.assertTrue(len(bad) == 1 or processes == 1, bad)
        self.assert_named(seen, first if step is None else step, *(bad or [0]), processes, culprit)

    def assert_named(self, process, step, rank, processes, culprit):
        files = self.incidents("run-bad")
        self.assertEqual([file.name for file in files], [f"step-{step:08d}.r{each}.h5" for each in range(processes)], process.stderr)
        self.assertIn(f"nanquest: step {step}: ", process.stderr)
        own = self.replay("diagnose", files[rank])
        self.assertTrue(own["reproduction"]["bit_exact"], own["reproduction"])
        said = {**own["culprit"], **own}
        self.assertEqual({key: said[key] for key in culprit}, culprit, own)
        self.assertEqual((own["step"], own["rank"]), (step, rank))
        if processes > 1:
            self.assertTrue(own["ranks"]["local"], own["ranks"])
            self.assertEqual(own["ranks"]["first"]["rank"], rank, own["ranks"])
            other = self.replay("diagnose", files[1 - rank], "--no-fixes", "--no-files")
            self.assertFalse(other["ranks"]["local"], other["ranks"])
            self.assertEqual(other["ranks"]["first"]["rank"], rank, other["ranks"])


GPT2 = {"op": "aten::native_layer_norm", "module": "transformer.h.0.ln_1", "cause": "FP16_OVERFLOW", "phase": "forward"}
BERT = {**GPT2, "module": "bert.embeddings.LayerNorm"}


@needs("transformers", "transformers", "accelerate", "datasets", "evaluate", "sklearn")
class TransformersTest(OfficialTest):
    EXAMPLES = OFFICIAL / "transformers" / "examples" / "pytorch"
    SHORT = (*QUIET, "--do_train", "--seed", "1", "--save_strategy", "no", "--per_device_train_batch_size")
    GLUE = (EXAMPLES / "text-classification" / "run_glue.py", "--model_name_or_path", "bert-base-cased", "--task_name", "mrpc",
            "--max_seq_length", "32", "--num_train_epochs", "1", *SHORT, "8")

    def test_run_clm(self):
        self.check([self.EXAMPLES / "language-modeling" / "run_clm.py", "--model_name_or_path", "gpt2", "--validation_file", "valid.txt",
                    "--max_steps", "24", *self.SHORT, "2", "--block_size", "32"],
                   ("--train_file", "train.txt"), ("--train_file", "poisoned.txt"), GPT2)

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
