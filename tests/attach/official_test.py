"""Programs as their projects publish them, under `nanquest run`: nothing of them is changed, a folder stands in for the hub, and one
sample, or one setting, is bad.

They are looked for in the folder NANQUEST_OFFICIAL, else in `official` of the set-up's cache: checkouts of transformers, accelerate, trl,
nanoGPT and pytorch-lightning, and a folder `packages` with what they need besides the test packages (datasets, evaluate, scikit-learn,
trl, jsonargparse). What is not there is skipped, with the reason.
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


class OfficialTest(PackagesTest):
    hub = None

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
        (self.scratch / "nyu-mll").unlink()
        (self.scratch / "nyu-mll").mkdir()
        (self.scratch / "nyu-mll" / "glue").symlink_to(self.hub / "glue-poisoned")

    def environment(self, **more):
        found = super().environment()
        found["PYTHONPATH"] = os.pathsep.join([found["PYTHONPATH"], str(OFFICIAL / "packages")])
        home = str(self.shared / "home")
        return {**found, "HF_DATASETS_OFFLINE": "1", "HF_HOME": home, "TOKENIZERS_PARALLELISM": "false", "NO_COLOR": "1",
                "CUDA_VISIBLE_DEVICES": "", **more}

    def watched(self, command, run_dir=None, witness=True):
        """The program alone, or under `nanquest run`: (process, {rank: its losses, of every backward pass})."""
        told = pathlib.Path(tempfile.mkdtemp(dir=self.shared))
        found = self.environment()
        if witness:
            path = os.pathsep.join([str(HERE / "official" / "witness"), found["PYTHONPATH"]])
            found = self.environment(PYTHONPATH=path, WITNESS=str(told))
        probe = ("-m", "nanquest", "run", "--run-dir", run_dir, "--", sys.executable) if run_dir else ()
        process = subprocess.run([sys.executable, *map(str, (*probe, *command))], cwd=self.scratch, text=True, capture_output=True,
                                 timeout=600, env=found)
        return process, {int(file.name[5:]): list(map(float.fromhex, file.read_text().split())) for file in told.iterdir()}

    def assert_same(self, one, other):
        """Two folders hold the same weights, byte for byte."""
        names = sorted(path.name for path in (self.scratch / one).iterdir() if path.suffix in (".safetensors", ".pt", ".ckpt"))
        self.assertTrue(names, f"no weights in {one}")
        for name in names:
            self.assertEqual((self.scratch / one / name).read_bytes(), (self.scratch / other / name).read_bytes(), name)

    def check(self, command, healthy, bad, culprit, processes=1, output="--output_dir", poison=lambda: None):
        """`command` with the healthy settings, then, after poison(), with the bad ones, each with and without the probe; `culprit`:
        what the verdict must say. The step and the rank are those that the program itself went bad at. `output`: the option for
        the folder that gets the weights; None if it saves none, and its losses are compared."""
        def tried(name, settings, **more):
            return self.watched([*command, *settings, *((output, name) if output else ())], **more)

        for name, settings in (("healthy", healthy), ("bad", bad)):
            if name == "bad":
                poison()
            alone, losses = tried(f"{name}-alone", settings)
            seen, told = tried(f"{name}-seen", settings, run_dir=f"run-{name}", witness=output is None)
            self.assertEqual(seen.returncode, alone.returncode, seen.stderr)
            self.assertEqual(len(losses), processes, alone.stderr)
            if output:
                self.assert_same(f"{name}-alone", f"{name}-seen")
            else:
                self.assertEqual(list(map(str, told.items())), list(map(str, losses.items())))
            if name == "healthy":
                self.assert_exit(alone)
                steps = len(losses[0])
                self.assertTrue(all(math.isfinite(loss) for of_rank in losses.values() for loss in of_rank))
                extent = f"{steps} steps" if processes == 1 else f"{processes} processes of {steps} steps each"
                self.assertEqual(self.probes_lines(seen), [f"nanquest: no incident in {extent}"])
        first = min((number, rank) for rank, of_rank in losses.items() for number, loss in enumerate(of_rank) if not math.isfinite(loss))
        self.assert_named(seen, *first, processes, culprit)

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
LLAMA = {**GPT2, "op": "aten::pow", "module": "model.layers.0.input_layernorm"}


@needs("transformers", "transformers", "accelerate", "datasets", "evaluate", "sklearn")
class TransformersTest(OfficialTest):
    EXAMPLES = OFFICIAL / "transformers" / "examples" / "pytorch"
    SHORT = (*QUIET, "--do_train", "--seed", "1", "--save_strategy", "no", "--per_device_train_batch_size")
    GLUE = (EXAMPLES / "text-classification" / "run_glue.py", "--model_name_or_path", "bert-base-cased", "--task_name", "mrpc",
            "--max_seq_length", "32", "--num_train_epochs", "1", *SHORT, "8")

    def texts(self, program, model, culprit, *more):
        self.check([self.EXAMPLES / "language-modeling" / program, "--model_name_or_path", model, "--validation_file", "valid.txt",
                    "--max_steps", "24", *self.SHORT, "2", *more],
                   ("--train_file", "train.txt"), ("--train_file", "poisoned.txt"), culprit)

    def test_run_clm(self):
        self.texts("run_clm.py", "gpt2", GPT2, "--block_size", "32")

    def test_run_mlm(self):
        self.texts("run_mlm.py", "bert-base-cased", BERT, "--max_seq_length", "32")

    def glue(self, launcher, processes):
        self.check([*launcher, *self.GLUE], (), (), BERT, processes, poison=self.poison_glue)

    def test_run_glue(self):
        self.glue((), 1)

    def test_run_glue_launched_by_accelerate(self):
        self.glue(ONE, 1)

    def test_run_glue_in_two_processes(self):
        self.glue(TWO, 2)


if __name__ == "__main__":
    main()
