"""Incidents in the loggers that a program has open itself, read back by the loggers' own packages."""

import glob
import json
import os
import struct
import sys
import unittest

from attached import BIN, PACKAGES, PROGRAMS, PackagesTest, importable, main, nightly

if PACKAGES:
    sys.path.append(PACKAGES)
LOSS, SKIP = "loss", ("--level", "watch", "--on-incident", "skip")
COUNTS = {"nanquest/incidents": [(3, 1.0), (5, 2.0)], "nanquest/skipped": [(3, 1.0), (5, 2.0)]}


def needs(name):
    return unittest.skipUnless(importable(name), f"{name} is not installed")


@needs("tensorboard")
class TensorBoardTest(PackagesTest):
    def read(self, folder):
        """(tag -> [(step, value)], tag -> [(step, text)])."""
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
        events = EventAccumulator(str(self.scratch / folder), size_guidance={"scalars": 0, "tensors": 0}).Reload()
        tags = events.Tags()
        return ({tag: [(event.step, event.value) for event in events.Scalars(tag)] for tag in tags["scalars"]},
                {tag: [(event.step, event.tensor_proto.string_val[0].decode()) for event in events.Tensors(tag)] for tag in tags["tensors"]})

    def alone(self, *words):
        """What the program logs without the probe."""
        self.assert_exit(self.plain(PROGRAMS / "logged.py", *words))
        numbers, texts = self.read("log")
        self.assertEqual((set(numbers), texts), ({LOSS}, {}))
        self.clear("log")
        self.clear("closed")
        return numbers[LOSS]

    def test_a_healthy_run_logs_what_it_logs_alone(self):
        own = self.alone("torch", "healthy")
        self.assert_exit(self.observed(PROGRAMS / "logged.py", "torch", "healthy", options=SKIP))
        self.assertEqual(self.read("log"), ({LOSS: own}, {}))

    def test_incidents_and_the_verdict(self):
        process = self.observed(PROGRAMS / "logged.py", "torch", "scaled", "explained", "listens", options=(*SKIP, "--explain"), NANQUEST_BIN=str(BIN))
        self.assert_exit(process)
        numbers, texts = self.read("log")
        self.assertEqual([step for step, _ in numbers.pop(LOSS)], list(range(8)))
        self.assertEqual(numbers, {**COUNTS, "nanquest/loss_scale": [(3, 1024.0), (5, 1024.0)]})
        told = texts["nanquest/incident/text_summary"]
        self.assertEqual([step for step, _ in told], [3, 5])
        for (step, text), file in zip(told, self.incidents()):
            self.assertTrue(text.startswith(f"step {step}: the loss is NaN"), text)
            self.assertIn("aten::addmm in 0 (forward)", text)
            self.assertIn(f"nanquest-replay {file}", text)
        self.assertEqual(process.stdout.splitlines(), [f"told of {step} {file}" for step, file in zip((3, 5), self.incidents())])
        (step, verdict), = [each for each in texts["nanquest/verdict/text_summary"] if each[0] == 3]
        self.assertTrue(verdict.startswith("# BAD_DATA at step 3"), verdict)
        self.assertNotIn("## Evidence", verdict)
        self.assertEqual(len(glob.glob(str(self.scratch / "closed" / "*"))), 1)  # the closed writer was left so

    def test_a_logger_that_raises(self):
        process = self.plain(PROGRAMS / "logged.py", "tensorboardX", "attach", "broken")
        self.assert_exit(process)
        self.assertEqual(len([line for line in self.probes_lines(process) if "no space left" in line]), 1, process.stderr)
        self.assertIn("Writer, which the program logs to, raised OSError: no space left; nothing more is logged to it", process.stderr)
        numbers, _ = self.read("log")
        self.assertEqual([step for step, _ in numbers[LOSS]], list(range(8)))
        self.assertEqual(numbers["nanquest/incidents"], [(3, 1.0)])
        self.assertEqual(len(self.incidents()), 2)

    @nightly
    def test_switched_off(self):
        process = self.plain(PROGRAMS / "logged.py", "tensorboardX", "attach-off")
        self.assert_exit(process)
        numbers, texts = self.read("log")
        self.assertEqual((set(numbers), texts), ({LOSS}, {}))
        self.assertEqual(len(self.incidents()), 2)

    @needs("transformers")
    def test_the_trainer_of_transformers_and_its_own_count(self):
        self.assert_exit(self.observed(PROGRAMS / "logged_huggingface.py", options=SKIP))
        numbers, texts = self.read("log/second")
        self.assertEqual(numbers["nanquest/incidents"], [(6, 1.0)])
        self.assertEqual([step for step, _ in numbers["train/loss"]], list(range(1, 9)))
        self.assertIn("step 10: ", texts["nanquest/incident/text_summary"][0][1])
        self.assertNotIn("nanquest/incidents", self.read("log/first")[0])

    @needs("lightning")
    def test_loggers_of_lightning(self):
        self.lightning(1)
        numbers, texts = self.read("log/tensorboard")
        self.assertEqual([step for step, _ in numbers[LOSS]], list(range(8)))
        self.assertEqual((numbers["nanquest/incidents"], len(texts)), ([(3, 1.0)], 1))
        rows = [line.split(",") for line in (self.scratch / "log/csv/metrics.csv").read_text().splitlines()]
        names = rows.pop(0)
        table = [dict(zip(names, row)) for row in rows]
        self.assertEqual([row["step"] for row in table if row[LOSS]], [str(step) for step in range(8)])
        self.assertEqual([row["step"] for row in table if row["nanquest/incidents"]], ["3"])

    @nightly
    @needs("lightning")
    def test_of_two_processes_the_one_with_a_writer_logs(self):
        self.lightning(2)
        numbers, _ = self.read("log/tensorboard")
        self.assertEqual([value for _, value in numbers["nanquest/incidents"]], [1.0])
        self.assertEqual(len(list((self.scratch / "log/tensorboard").glob("events*"))), 1)

    def lightning(self, processes):
        self.assert_exit(self.observed(PROGRAMS / "logged_lightning.py", processes, options=SKIP))


class OthersTest(PackagesTest):
    """These packages are large: tests/run.sh does not install them."""

    def run_it(self, way, **more):
        process = self.observed(PROGRAMS / "logged.py", way, options=SKIP, **more)
        self.assert_exit(process)
        self.assertNotIn("which the program logs to", process.stderr)

    def history(self):
        """The rows of W&B's offline file, as name -> value; it is written in blocks as LevelDB's log is."""
        from wandb.proto import wandb_internal_pb2
        data = (next(self.scratch.glob("wandb/offline-run-*/run-*.wandb"))).read_bytes()
        at, whole, rows = 7, b"", []
        while at + 7 <= len(data):
            if (left := 32768 - at % 32768) < 7:
                at += left
                continue
            length, part = struct.unpack_from("<HB", data, at + 4)
            whole += data[at + 7:at + 7 + length]
            at += 7 + length
            if part not in (1, 4):
                continue
            record = wandb_internal_pb2.Record.FromString(whole)
            whole = b""
            if record.WhichOneof("record_type") == "history":
                rows.append({item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in record.history.item})
        return rows

    @needs("wandb")
    def test_wandb(self):
        for way, steps in (("wandb", list(range(8))), ("wandb-steps", list(range(0, 80, 10)))):
            with self.subTest(way):
                self.run_it(way, WANDB_MODE="offline", WANDB_SILENT="true")
                rows = self.history()
                self.assertEqual([row["_step"] for row in rows], steps)  # none of ours, none lost
                self.assertTrue(all("loss" in row for row in rows), rows)
                told = [row for row in rows if "nanquest/incidents" in row]
                self.assertEqual([(row["nanquest/incidents"], row["nanquest/step"]) for row in told], [(1, 3), (2, 5)])
                self.assertIn(f"nanquest-replay {self.incidents()[0]}", told[0]["nanquest/incident"])
                self.clear("wandb")
                self.clear("run")

    @needs("mlflow")
    def test_mlflow(self):
        self.run_it("mlflow", MLFLOW_ALLOW_FILE_STORE="true")
        client = self.mlflow_client()
        run, = client.search_runs(["0"])
        read = {name: [(metric.step, metric.value) for metric in client.get_metric_history(run.info.run_id, name)] for name in run.data.metrics}
        self.assertEqual(len(read.pop(LOSS)), 8)
        self.assertEqual(read, COUNTS)
        texts = [artifact.path for artifact in client.list_artifacts(run.info.run_id, "nanquest")]
        self.assertEqual(texts, ["nanquest/incident-00000003.md", "nanquest/incident-00000005.md"])

    def mlflow_client(self):
        os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
        from mlflow import MlflowClient
        return MlflowClient(f"file:{self.scratch / 'log'}")


if __name__ == "__main__":
    main()
