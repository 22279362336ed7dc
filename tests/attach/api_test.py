"""What a program may tell nanquest about its steps: numbers, samples, settings; by itself or by a Trainer's callback."""

import importlib.util
import json

from attached import HERE, PROGRAMS, AttachTest, main


class ApiTest(AttachTest):
    def run_it(self, way, *fakes):
        paths = [str(HERE / "fakes")] if any(importlib.util.find_spec(name) is None for name in fakes) else []
        process = self.plain(PROGRAMS / "callbacks.py", "run", way, PYTHONPATH=paths)
        self.assert_exit(process)
        return process, self.incidents()

    def poison(self, snapshot):
        verdict = self.replay("diagnose", snapshot)
        self.assertEqual(verdict["cause"], "BAD_DATA")
        manifest = json.loads((snapshot.parents[1] / "manifest.json").read_text())
        return verdict, manifest["config"]

    def test_batch_and_step(self):
        process, found = self.run_it("batch")
        self.assertEqual(found[0].name, "step-00001002.r0.h5")
        verdict, _ = self.poison(found[0])
        self.assertEqual(verdict["samples"]["batch"], 5)
        self.assertIn("13", str(verdict["samples"]))
        told = [line for line in process.stderr.splitlines() if "nanquest.batch" in line]
        self.assertEqual(len(told), 1, process.stderr)

    def test_huggingface(self):
        _, found = self.run_it("huggingface", "transformers")
        self.assertTrue(500 <= int(found[0].name[5:13]) < 508, found)
        verdict, config = self.poison(found[0])
        self.assertIn("13", str(verdict["samples"]))
        self.assertIn("trainer.learning_rate", config)

    def test_lightning(self):
        _, found = self.run_it("lightning", "pytorch_lightning")
        self.assertEqual(found[0].name, "step-00000072.r0.h5")
        verdict, config = self.poison(found[0])
        self.assertIn("13", str(verdict["samples"]))
        self.assertIn("trainer.lr", config)

    def test_attaching_again_behind_another_stand_in(self):
        """Another package replaced Module.__call__ while the probe was attached, and its replacement is still there when the probe comes
        back."""
        program = self.scratch / "train.py"
        program.write_text("import torch, nanquest\n"
                           "print(nanquest.attach('run', level='guard'))\n"
                           "before = torch.nn.Module.__call__\n"
                           "def call(self, *args, **kwargs):\n    return before(self, *args, **kwargs)\n"
                           "torch.nn.Module.__call__ = call\n"
                           "nanquest.detach()\n"
                           "print(nanquest.attach('again', level='guard'))\n"
                           "model = torch.nn.Linear(4, 1)\n"
                           "optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)\n"
                           "for _ in range(3):\n"
                           "    model(torch.ones(2, 4)).sum().backward()\n"
                           "    optimizer.step()\n"
                           "print(nanquest.step())\n")
        done = self.plain(program)
        self.assertEqual((done.stdout.split(), done.stderr), (["True", "True", "2"], ""))

    def test_a_probe_that_cannot_listen_everywhere_is_off(self):
        """Half of one would be silent about the other half."""
        program = self.scratch / "train.py"
        program.write_text("import torch, nanquest\n"
                           "from nanquest.hear import hooks\n"
                           "own = torch.nn.Module.__call__\n"
                           "def fails(patches):\n    raise AttributeError('not as it was')\n"
                           "hooks.pipelines.install = fails\n"
                           "print(nanquest.attach('run'), torch.nn.Module.__call__ is own)\n"
                           "model = torch.nn.Linear(4, 1)\n"
                           "optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)\n"
                           "(model(torch.ones(2, 4)).sum() * torch.nan).backward()\n"
                           "optimizer.step()\n")
        process = self.plain(program)
        self.assert_exit(process)
        self.assertEqual(process.stdout, "False True\n")
        self.assertEqual(self.probes_lines(process), ["nanquest: the probe is off: AttributeError: not as it was"])
        self.assertFalse((self.scratch / "run").exists())

    def test_functions_that_are_told_of_incidents(self):
        process = self.plain(PROGRAMS / "listeners.py", "run")
        self.assert_exit(process)
        rows = [line.split("|") for line in process.stdout.splitlines()]
        self.assertEqual([row[0] for row in rows], ["3", "5"])
        for row, file in zip(rows, self.incidents()):
            self.assertEqual(row[1:3], [str(self.scratch / "run"), str(file)])
            self.assertTrue(row[3].startswith(f"step {row[0]}: "), row)
        failed = [line for line in self.probes_lines(process) if "no route to the pager" in line]
        self.assertEqual(len(failed), 1, process.stderr)
        self.assertIn("fails, called for incidents, raised OSError", failed[0])


if __name__ == "__main__":
    main()
