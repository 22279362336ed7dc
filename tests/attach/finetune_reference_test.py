"""Incidents of fine-tunes refer to the model's file for what does not train, those of nanquest-trainer and of programs in Python: how large they are,
what they say to h5py and safetensors, and what becomes of a replay when that file moves, changes or goes."""

import json
import pathlib
import shutil
import subprocess
import time
import unittest

from attached import BIN, PROGRAMS, by_day, importable, main
from finetuned import TRAINER, FinetuneTest

WEIGHTS = pathlib.Path("llama/model.safetensors")
LORA = ("--lora", "--batch-size", 8, "--steps", 36, "--lr", 1e-3, "--amp-dtype", "fp16", "--on-incident", "skip")


@unittest.skipUnless(importable("transformers"), "transformers is not installed")
class FinetuneReferenceTest(FinetuneTest):
    def attached_incident(self, *options):
        """Of a program in Python whose step 3 is bad."""
        if not WEIGHTS.exists():
            self.sample()
        self.clear("run")
        self.assert_exit(self.observed(PROGRAMS / "frozen.py", "llama", "after.safetensors", options=options))
        return self.incidents()[0]

    def incident(self, *options, run="run"):
        """Of a fine-tune that overflows on one sample."""
        if not WEIGHTS.exists():
            self.sample()
            self.prepare()
        process = self.finetune(run, *LORA, *options, code=1)
        summary = json.loads(process.stdout)
        self.assertEqual(summary["outcome"], "finished", process.stderr)
        return self.scratch / summary["snapshots"][0]

    def refused(self, *arguments):
        """nanquest-replay ends with exit code 3 and one line."""
        process = subprocess.run([str(BIN / "nanquest-replay"), *map(str, arguments), "-q"], cwd=self.scratch, text=True, capture_output=True,
                                 timeout=300, check=False)
        self.assert_exit(process, 3)
        self.assertEqual((process.stderr.count("\n"), process.stdout), (1, ""), process.stderr)
        return process.stderr

    def read_by_hand(self, snapshot):
        """With h5py and nothing of nanquest: {path in the snapshot: (file, bytes there)}."""
        import h5py
        found = {}
        with h5py.File(snapshot) as file:
            version = file.attrs["format_version"]
            self.assertEqual(version.decode() if isinstance(version, bytes) else version, "3.0")
            raw, cuts = file["strings/bytes"][:].tobytes(), file["strings/offsets"][:]
            strings = [raw[a:b].decode() for a, b in zip(cuts, cuts[1:])]
            table = {name: column[:] for name, column in file["references"].items()}
            for row, path in enumerate(strings[i] for i in table["path"]):
                self.assertNotIn(path, file, "a tensor is here or there")
                shape = table["shape"][table["shape_offsets"][row]:table["shape_offsets"][row + 1]]
                where, count = pathlib.Path(strings[table["file"][row]]), int(shape.prod())
                self.assertEqual(where.stat().st_size, table["file_bytes"][row])
                self.assertEqual((snapshot.parent / strings[table["from_here"][row]]).resolve(), where)
                begin = int(table["offset"][row])
                found[path] = (where, where.read_bytes()[begin:begin + 4 * count])  # all are fp32
        return found

    def test_frozen_weights_are_the_models_file(self):
        import safetensors.numpy
        snapshot, whole = self.incident(), self.incident("--frozen-weights", "embed", run="embedded")
        frozen = WEIGHTS.stat().st_size
        self.assertLess(snapshot.stat().st_size, whole.stat().st_size - 0.9 * frozen)
        found = self.read_by_hand(snapshot)
        weights = {tensor.tobytes() for tensor in safetensors.numpy.load_file(WEIGHTS).values()}
        self.assertEqual({where for where, _ in found.values()}, {WEIGHTS.resolve()})
        self.assertTrue({content for _, content in found.values()} <= weights, "each is a whole tensor of the file")
        self.assertGreater(sum(len(content) for _, content in found.values()), 0.9 * frozen)
        # No byte of them is in the snapshot, and the other one has them all.
        here, there = snapshot.read_bytes(), whole.read_bytes()
        for _, content in found.values():
            self.assertEqual((content in here, content in there), (False, True))
        info = self.replay("info", snapshot)
        self.assertEqual(info["format_version"], "3.0")
        self.assertEqual(info["elsewhere"], [{"file": str(WEIGHTS.resolve()), "bytes": sum(len(content) for _, content in found.values()),
                                              "tensors": len(found), "found": str(WEIGHTS.resolve())}])
        self.assertNotIn("elsewhere", self.replay("info", whole))
        for file in (snapshot, whole):
            self.assert_bit_exact(file)
        one, other = (self.replay("diagnose", file) for file in (snapshot, whole))
        for name in ("cause", "culprit", "precision", "fix"):
            self.assertEqual(one[name], other[name])

    def test_frozen_weights_of_a_python_program(self):
        import safetensors.numpy
        for level in by_day(("trace",), ("watch",)):
            with self.subTest(level):
                snapshot, whole = (self.attached_incident("--level", level, *more).rename(f"{level}{len(more)}.h5")
                                   for more in ((), ("--frozen-weights", "embed")))
                self.assertLess(snapshot.stat().st_size, whole.stat().st_size - 0.9 * WEIGHTS.stat().st_size)
                [elsewhere] = self.replay("info", snapshot)["elsewhere"]
                self.assertEqual(elsewhere["file"], str(WEIGHTS.resolve()))
                self.assertGreater(elsewhere["bytes"], 0.9 * WEIGHTS.stat().st_size)
                for file in (snapshot, whole):
                    self.assert_bit_exact(file)
                before, after = (safetensors.numpy.load_file(file) for file in (WEIGHTS, "after.safetensors"))
                for name, tensor in after.items():
                    self.assertTrue((tensor == before[name]).all(), name)

    def test_the_model_moves_changes_and_goes(self):
        snapshot = self.incident()
        path, home = str(WEIGHTS.resolve()), pathlib.Path("elsewhere/llama")
        content = WEIGHTS.read_bytes()
        self.assertEqual(self.replay("embed", snapshot, "-o", "whole.h5")["bytes"], pathlib.Path("whole.h5").stat().st_size)
        with self.subTest("changed by a byte"):
            WEIGHTS.write_bytes(content[:-5] + bytes([content[-5] ^ 1]) + content[-4:])
            for verb in ((), ("verify",), ("run",), ("repro",)):
                said = self.refused(*verb, snapshot)
                for part in (f"{path}: has changed since", str(snapshot), "--model DIR", "nanquest-replay embed"):
                    self.assertIn(part, said)
            self.refused("embed", snapshot, "-o", "none.h5")
            self.refused("redact", snapshot, "-o", "none.h5", "--no-check")
            self.assertEqual(list(pathlib.Path().glob("none*")), [])
        with self.subTest("cut off"):
            WEIGHTS.write_bytes(content[:-5])
            self.assertIn(f"{path}: has {len(content) - 5} bytes, but had {len(content)}", self.refused("verify", snapshot))
        with self.subTest("moved"):
            WEIGHTS.write_bytes(content)
            shutil.move("llama", home)
            self.assertIn(f"{path}: can't be opened (No such file or directory)", self.refused("verify", snapshot))
            self.assertIn("nor is it in data", self.refused("verify", snapshot, "--model", "data"))
            self.assertEqual(self.replay("info", snapshot)["elsewhere"][0]["found"], None)
            self.assertTrue(self.replay("verify", snapshot, "--model", home)["bit_exact"])
            self.assertEqual(self.replay("info", snapshot, "--model", home)["elsewhere"][0]["found"], str(home / "model.safetensors"))
            # As a cache of downloads has it: another name, and another file of that size beside it.
            (home / "model.safetensors").rename(home / "4a53")
            (home / "0000").write_bytes(bytes(len(content)))
            self.assertTrue(self.replay("verify", snapshot, "--model", home)["bit_exact"])
            self.replay("redact", snapshot, "-o", "shared.h5", "--model", home)
            self.assertNotIn("elsewhere", self.replay("info", "shared.h5"))
            self.assertNotIn(str(self.scratch).encode(), pathlib.Path("shared.h5").read_bytes(), "nor the path")
        with self.subTest("gone"):
            shutil.rmtree("elsewhere")
            self.assert_bit_exact("whole.h5")
            self.assertNotIn("elsewhere", self.replay("info", "whole.h5"))
            process = subprocess.run([str(BIN / "nanquest-replay"), "embed", "whole.h5", "-o", "again.h5"], cwd=self.scratch, text=True,
                                     capture_output=True, check=False)
            self.assert_exit(process, 2)
            self.assertIn("no other file is needed", process.stderr)

    def test_the_smallest_copy_needs_no_other_file(self):
        snapshot = self.incident()
        self.replay("minimal", snapshot, "-o", "small.h5")
        shutil.rmtree("llama")
        self.assertEqual(self.replay("diagnose", "small.h5")["cause"], "FP16_OVERFLOW")
        self.assert_bit_exact("small.h5")

    def test_files_of_the_run_are_collected(self):
        snapshot = self.incident()
        said = self.replay("collect", "run", "-o", "all")
        self.assertTrue(any(str(WEIGHTS.resolve()) in note and "embed" in note for note in said["notes"]), said)
        self.assert_bit_exact(pathlib.Path("all/incidents", snapshot.name))

    def rewound(self, file):
        """What a run of the steps on its tape comes to."""
        return {name: value for name, value in self.replay("rewind", file, "--only-check", "--no-file").items() if name != "seconds"}

    def test_a_tape_refers_too_and_is_rewound(self):
        taped = ("--level", "trace", "--tape", 4, "--amp-dtype", "fp32", "--steps", 8, "--inject", "nan-loss@6")
        snapshot, whole = self.incident(*taped), self.incident(*taped, "--frozen-weights", "embed", run="embedded")
        # Both the step and the tape have the weights.
        self.assertLess(snapshot.stat().st_size, whole.stat().st_size - 1.8 * WEIGHTS.stat().st_size)
        self.assertIn("tape/", " ".join(self.read_by_hand(snapshot)))
        self.assert_bit_exact(snapshot)
        checks = [self.rewound(file) for file in (snapshot, whole)]
        self.assertEqual(*checks)
        self.assertTrue(checks[0]["reached"], checks[0])
        self.assertEqual(checks[0]["failed_ops"], 0)
        self.replay("embed", snapshot, "-o", "whole.h5")
        shutil.rmtree("llama")
        self.assertEqual(self.rewound("whole.h5"), checks[0])
        self.assertIn("model.safetensors: can't be opened", self.refused("rewind", snapshot, "--only-check"))

    def test_a_model_that_is_removed_while_it_trains_is_embedded(self):
        self.sample()
        self.prepare()
        steps = 400
        arguments = ("finetune", "--model", "llama", "--data", "data", "--run-dir", "run", "--threads", 1, "--json", "--holdout-every", 0, "--lora",
                     "--batch-size", 4, "--steps", steps + 2, "--on-incident", "skip", "--inject", f"nan-loss@{steps}")
        with subprocess.Popen([str(TRAINER), *map(str, arguments)], cwd=self.scratch, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=self.environment()) as process:
            metrics, until = self.scratch / "run" / "metrics.jsonl", time.monotonic() + 60
            while time.monotonic() < until and not (metrics.exists() and metrics.read_text().count("\n") > 1):
                time.sleep(0.01)
            WEIGHTS.unlink()
            self.assertLess(metrics.read_text().count("\n"), steps)
            summary = json.loads(process.communicate(timeout=200)[0])
        self.assertEqual(process.returncode, 1)
        snapshot = self.scratch / summary["snapshots"][0]
        self.assertNotIn("elsewhere", self.replay("info", snapshot))
        self.assert_bit_exact(snapshot)


if __name__ == "__main__":
    main()
