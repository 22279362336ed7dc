"""PyTorch's own examples as they are, under `nanquest run`: see official_case.py."""

import os
import struct

from attached import HERE, main
from official_case import OFFICIAL, TORCHRUN, OfficialTest, needs

EXAMPLES = OFFICIAL / "pytorch-examples"


@needs("pytorch-examples")
class TorchTest(OfficialTest):
    def check_rate(self, command, steps, rate, which):
        """Healthy, the losses are those without the probe; with that rate the first update makes weights enormous, and the verdict says
        `which`."""
        alone, told = self.watched(command)
        seen, again = self.watched(command, run_dir="run-healthy")
        self.assert_exit(seen)
        self.assertEqual(again, told, alone.stderr)
        self.assertEqual(self.probes_lines(seen), [f"nanquest: no incident in {steps} steps"])
        seen, _ = self.watched([*command, "--lr", rate], run_dir="run-bad")
        self.assertEqual([file.name for file in self.incidents("run-bad")], ["step-00000001.r0.h5"], seen.stderr)
        self.assert_bit_exact(self.incidents("run-bad")[0])
        said = self.replay("diagnose", self.incidents("run-bad")[0])
        self.assertEqual((said["cause"], said["precision"]["verdict"]), ("FP16_OVERFLOW", "delayed"), said["explanation"])
        self.assertRegex(said["explanation"], which)

    @needs("pytorch-examples", "torchvision")
    def test_mnist(self):
        """Noise, where torchvision looks for the files; with an enormous rate the first update ruins the weights."""
        import numpy
        folder, chance = self.scratch / "data" / "MNIST" / "raw", numpy.random.default_rng(0)
        folder.mkdir(parents=True)
        for name, count in (("train", 1280), ("t10k", 256)):
            pictures, digits = chance.integers(0, 256, (count, 28, 28), numpy.uint8), chance.integers(0, 10, count, numpy.uint8)
            (folder / f"{name}-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 2051, count, 28, 28) + pictures.tobytes())
            (folder / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 2049, count) + digits.tobytes())
        self.scratch = self.scratch / "mnist"
        self.scratch.mkdir()
        self.check_rate([EXAMPLES / "mnist" / "main.py", "--epochs", "1", "--no-accel"], 20, "1e38",
                        r"weight_norm of \S+ grew from \S+ to \S+e\+3\d over")

    def test_word_language_model(self):
        """It writes its weights itself; with an enormous rate its first update ruins them."""
        (self.scratch / "words").mkdir()
        for name, source in (("train", "train"), ("valid", "valid"), ("test", "valid")):
            (self.scratch / "words" / f"{name}.txt").write_text((self.scratch / f"{source}.txt").read_text())
        command = [EXAMPLES / "word_language_model" / "main.py", "--data", "words", "--epochs", "1", "--emsize", "32", "--nhid", "32",
                   "--batch_size", "4", "--bptt", "8", "--model", "Transformer", "--save", "model.pt"]
        self.check_rate(command, 65, "1e36", r"weight itself holds values of up to \S+e\+3\d, which no initialisation gives")

    def test_sharded(self):
        """FSDP2's example, which leaves layers as to_empty gave them; memory is filled with zeros here. Then it goes on from a
        checkpoint with an infinity in rank 1's part of a weight."""
        import torch
        self.accelerators = 2
        command = [*TORCHRUN, EXAMPLES / "distributed" / "FSDP2" / "example.py"]
        alone, told = self.watched(command)
        self.assert_exit(alone)
        (saved,) = self.scratch.glob("checkpoints/dtensor_api/*/model_state_dict.pt")
        (self.scratch / "checkpoints").rename(self.scratch / "checkpoints-alone")
        seen, again = self.watched(command, run_dir="run-healthy")
        self.assertEqual(again, told)
        self.assertEqual(self.probes_lines(seen), ["nanquest: no incident in 2 processes of 10 steps each"])
        (saved,) = self.scratch.glob("checkpoints/dtensor_api/*/model_state_dict.pt")
        weights, name = torch.load(saved), "layers.3.feed_forward.w1.weight"
        weights[name][40, 2] = float("inf")
        torch.save(weights, saved)
        seen, _ = self.watched(command, run_dir="run-bad")
        self.assertIn("in 2 processes of 10 steps each", seen.stderr)
        self.assert_named(seen, 0, 1, 2, {"cause": "BAD_STATE", "origin": "parameter"})

    def test_tensor_parallel(self):
        self.accelerators = 2
        for name in ("tensor_parallel_example.py", "sequence_parallel_example.py"):
            with self.subTest(name):
                command = [*TORCHRUN, EXAMPLES / "distributed" / "tensor_parallelism" / name]
                alone, told = self.watched(command)
                seen, again = self.watched(command, run_dir=f"run-{name}")
                self.assert_exit(seen)
                self.assertEqual(again, told, alone.stderr)
                self.assertEqual(self.probes_lines(seen), ["nanquest: no incident in 2 processes of 10 steps each"])

    def environment(self, **more):
        # What is not given a value is zero, what is drawn without a seed the same each time.
        found = super().environment(**more)
        path = [str(HERE / "official" / "witness"), found["PYTHONPATH"]]
        return {**found, "MALLOC_PERTURB_": "255", "SEED": "0", "PYTHONPATH": os.pathsep.join(path)}


if __name__ == "__main__":
    main()
