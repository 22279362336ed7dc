"""nanquest-trainer finetune and yesno on several ranks, of mpirun and of torchrun: the losses of one process on the same batches, an incident on one
of them that all survive, another number of them after a resume."""

import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import unittest
from unittest import mock

from attached import BIN, importable, main, nightly
from finetuned import TRAINER
from yesno_test import PicturesTest

STEPS, LOSSES = 20, 1e-5
MPIRUN = shutil.which("mpirun") or ""


def no_mpi():
    """Why nothing can be started by mpirun, "" if it can."""
    if not MPIRUN:
        return "no mpirun here (package openmpi-bin)"
    if "Open" not in subprocess.run([MPIRUN, "--version"], text=True, capture_output=True, check=False).stdout:
        return "these tests know Open MPI's mpirun only"
    if not any("libmpi" in line for line in subprocess.run(["ldd", str(TRAINER)], text=True, capture_output=True, check=False).stdout.splitlines()):
        return "nanquest-trainer was built without MPI"
    return ""


def by_mpirun(ranks):
    return [MPIRUN, "--oversubscribe", "--bind-to", "none", *(["--allow-run-as-root"] if os.geteuid() == 0 else []), "-n", str(ranks), str(TRAINER)]


def by_torchrun(ranks):
    return [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks), "-m", "nanquest", "train"]


@unittest.skipUnless(importable("transformers") and importable("PIL"), "transformers and Pillow are not installed")
class RanksTest(PicturesTest):
    def metric(self, run, name):
        rows = [json.loads(line) for line in (self.scratch / run / "metrics.jsonl").read_text().splitlines()]
        return [row[name] for row in rows if name in row]

    def assert_same_run(self, run, alone, most=LOSSES):
        """Losses of every step, whatever was measured of held-out samples, and the weights at the end."""
        from safetensors.torch import load_file
        for name, number in (("loss", STEPS), ("eval_loss", 1), ("eval_tpr", 1), ("eval_fpr", 1)):
            ours, theirs = self.metric(run, name), self.metric(alone, name)
            self.assertEqual(len(ours), len(theirs))
            self.assertIn(len(ours), (number, 0) if name != "loss" else (number,))
            for a, b in zip(ours, theirs):
                self.assertLessEqual(abs(a - b), most * abs(b), f"{name}: {ours}\n{theirs}")
        weights = [load_file(self.scratch / name / "checkpoints" / "final.safetensors") for name in (run, alone)]
        self.assertEqual(set(weights[0]), set(weights[1]))
        for name, a in weights[0].items():
            self.assertLess((a - weights[1][name]).norm(), 1e-3 * weights[1][name].norm() + 1e-6, name)

    def assert_survived(self, run, process, module):
        """Rank 1's overflow, on all ranks: all went on, with the same weights (else the exit code is 70), and the files name it."""
        summary = json.loads(process.stdout[process.stdout.index("{"):])
        self.assertEqual((summary["outcome"], summary["incidents"], summary["fell_back"]), ("finished", 1, True), process.stderr)
        self.assertIn("rank 1's loss was NaN before the ranks' parts were added up", process.stderr)
        self.assertEqual([file.name.split(".")[1] for file in self.incidents(run)], ["r0", "r1"])
        self.assertEqual(summary["snapshots"], [f"{run}/incidents/{self.incidents(run)[1].name}"])
        found = self.replay("ranks", self.scratch / run)
        self.assertEqual((found["finding"], found["first"]["rank"], found["first"]["op"], found["first"]["module"]), ("rank", 1, "aten::mm", module), found)
        self.assertTrue(found["proof"]["healed"], found)

    def yesno_alike(self, by, data="train", held_out="val"):
        """The sample's LLaVA with adapters: one process and two, 39 pictures to evaluate on (so that the ranks have unequal parts)."""
        lines = pathlib.Path("pictures/val.jsonl").read_text().splitlines()
        pathlib.Path("pictures/val.jsonl").write_text("\n".join(lines[:39]) + "\n")
        if held_out == "val":
            self.prepare(out="train")
            self.prepare(data="pictures/val.jsonl", out="val")
        options = ("--lora", "--lora-dropout", 0, "--batch-size", 8, "--steps", STEPS, "--lr", 1e-3, "--val-data", held_out)
        self.yesno("both", *options, data=data, by=by)
        self.yesno("alone", *options, data=data)
        self.assert_same_run("both", "alone")
        self.assertEqual(len(self.metric("both", "eval_tpr")), 1)

    # The batches in which the rare sample comes, as the eighth of its eight: rank 1's.
    def yesno_breaks(self, by):
        process = self.yesno("broken", "--lora", "--lora-dropout", 0, "--steps", 18, "--lr", 1e-3, "--amp-dtype", "fp16", data="train", by=by, code=1)
        self.assert_survived("broken", process, "model.language_model.layers.0.mlp.down_proj")

    @unittest.skipIf(no_mpi(), no_mpi())
    def test_yesno_by_mpirun(self):
        self.sample()
        self.yesno_alike(by_mpirun(2))
        self.yesno_breaks(by_mpirun(2))

    @unittest.skipIf(no_mpi(), no_mpi())
    def test_a_broken_line_is_told_once(self):
        self.sample()
        pathlib.Path("pictures/broken.jsonl").write_text('{"path": "0.png", "label": 3}\n')
        with self.command_on_path():
            process = self.yesno("run", "--steps", 2, data="pictures/broken.jsonl", by=by_mpirun(2), code=3)
        self.assertEqual(process.stderr.count("pictures/broken.jsonl:1: its label is 3"), 1, process.stderr)
        self.assertFalse(pathlib.Path("run").exists())

    def command_on_path(self):
        """`nanquest`, as an installed package has it."""
        command = self.scratch / "bin" / "nanquest"
        command.parent.mkdir()
        command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m nanquest "$@"\n')
        command.chmod(0o755)
        return mock.patch.dict(os.environ, PATH=f"{command.parent}:{os.environ['PATH']}")

    @nightly
    def test_yesno_by_torchrun(self):
        self.sample()
        with self.command_on_path():
            self.yesno_alike(by_torchrun(2), "pictures/train.jsonl", "pictures/val.jsonl")
        self.prepare(out="train")
        self.yesno_breaks(by_torchrun(2))

    def chats(self):
        super(PicturesTest, self).sample()
        super(PicturesTest, self).prepare("--packing", "--max-length", "48", out="packed")
        super(PicturesTest, self).prepare(out="chats")

    def finetune_alike(self, by):
        """A whole model on packed rows, in parts of parts."""
        options = ("--batch-size", 8, "--accumulation", 2, "--steps", STEPS, "--lr", 1e-3, "--holdout-every", 7)
        self.finetune("both", *options, data="packed", by=by)
        self.finetune("alone", *options, data="packed")
        self.assert_same_run("both", "alone")

    def finetune_breaks(self, by):
        process = self.finetune("broken", "--lora", "--steps", 15, "--lr", 1e-3, "--amp-dtype", "fp16", "--seed", 4, data="chats", by=by, code=1)
        self.assert_survived("broken", process, "model.layers.0.mlp.down_proj")

    @unittest.skipIf(no_mpi(), no_mpi())
    def test_finetune_by_mpirun(self):
        self.chats()
        self.finetune_alike(by_mpirun(2))
        self.finetune_breaks(by_mpirun(2))
        # Begun by two, ended by one.
        options = ("--lora", "--lora-dropout", 0, "--steps", STEPS, "--lr", 1e-3)
        self.clear("both")
        self.clear("alone")
        self.finetune("alone", *options, data="chats")
        self.finetune("both", *options, "--stop-after", 9, data="chats", by=by_mpirun(2))
        self.finetune("both", *options, "--resume", data="chats")
        self.assert_same_run("both", "alone")

    @nightly
    def test_finetune_by_torchrun(self):
        self.chats()
        self.finetune_alike(by_torchrun(2))
        self.finetune_breaks(by_torchrun(2))


if __name__ == "__main__":
    main()
