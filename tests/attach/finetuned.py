"""What the tests of fine-tuning share: the sample's model and chats, nanquest prepare in this process, nanquest-trainer, and rows as it sees them."""

import contextlib
import functools
import importlib
import io
import json
import os
import subprocess
import sys

from attached import BIN, PACKAGE, PACKAGES, ROOT, PackagesTest

sys.path[1:1] = [str(PACKAGE)]
sys.path.append(PACKAGES)
os.environ["HF_HUB_OFFLINE"] = "1"
ROWS = os.environ.get("NANQUEST_TEST_ROWS", str(BIN / "tests" / "print_rows"))
TRAINER = BIN / "nanquest-trainer"
SEED = 1  # the one that print_rows has


@functools.cache
def sample_module(name):
    """samples/finetune/NAME.py as a module."""
    import torch
    import transformers
    torch.set_num_threads(1)
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
    sys.path.append(str(ROOT / "samples" / "finetune"))
    return importlib.import_module(name)


def run_sample(name, *arguments):
    with contextlib.redirect_stdout(io.StringIO()):
        sys.argv[1:], before = arguments, sys.argv[1:]
        try:
            sample_module(name).main()
        finally:
            sys.argv[1:] = before


class FinetuneTest(PackagesTest):
    """In its scratch folder: models by name, x.jsonl, prepared data, runs."""

    def setUp(self):
        super().setUp()
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.scratch)

    def sample(self, folder="llama"):
        """The sample's model in `folder`, its chats in x.jsonl; (model, tokenizer)."""
        run_sample("tiny_llama", folder, "x.jsonl")
        import transformers
        return transformers.AutoModelForCausalLM.from_pretrained(folder), transformers.AutoTokenizer.from_pretrained(folder)

    def prepare(self, *options, model="llama", out="data", code=0, data="x.jsonl"):
        """The command in this process, which has imported transformers already; what it said on stderr."""
        from nanquest import cli
        said, told = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(told):
            ended = cli.main(["prepare", "--model", model, "--data", data, "--out", out, "--processes", "1", *options])
        self.assertEqual(ended, code, said.getvalue() + told.getvalue())
        return told.getvalue()

    def trainer(self, *arguments, code=0, stdin=None, by=(str(TRAINER),)):
        """nanquest-trainer, one thread, finished; `by`: the words that start it."""
        process = subprocess.run([*by, *map(str, arguments)], cwd=self.scratch, text=True, capture_output=True, timeout=300,
                                 input=stdin, env=self.environment(), check=False)
        self.assert_exit(process, code)
        return process

    def finetune(self, run, *arguments, code=0, model="llama", data="data", verb="finetune", **more):
        return self.trainer(verb, "--model", model, "--data", data, "--run-dir", run, "--seed", SEED, "--threads", 1, "--json",
                            "--holdout-every", 0, *arguments, code=code, **more)

    def losses(self, run):
        return [json.loads(line)["loss"] for line in (self.scratch / run / "metrics.jsonl").read_text().splitlines()]

    def rows(self, data="data", kind="16"):
        """In the order in which the first pass learns from them."""
        process = subprocess.run([ROWS, data, kind], cwd=self.scratch, text=True, capture_output=True, timeout=60, check=False)
        self.assert_exit(process)
        return [json.loads(line) for line in process.stdout.splitlines()]

    def greedy(self, prompts, *arguments):
        """What nanquest-trainer sample adds to each prompt of tokens."""
        lines = "".join(" ".join(map(str, prompt)) + "\n" for prompt in prompts)
        return [json.loads(line)["tokens"] for line in self.trainer("sample", "--json", "--threads", 1, *arguments, stdin=lines).stdout.splitlines()]

    def assert_one_line(self, process, *parts):
        """Of complaint, with all of these in it."""
        self.assertEqual(process.stderr.count("\n"), 1, process.stderr)
        for part in parts:
            self.assertIn(part, process.stderr)
        self.assertEqual(process.stdout, "")
