"""nanquest-trainer on the command line: help, exit codes, and its answers to bad input and bad disks."""

import importlib.util
import json
import pathlib
import subprocess
import sys
import unittest

import common

SMALL = ("--depth", 1, "--width", 32, "--heads", 2, "--context", 32, "--batch-size", 4, "--steps", 8,
         "--eval-windows", 4, "--threads", 1)


class Trainer(common.ProgramTest):
    def setUp(self):
        super().setUp()
        self.text = self.scratch / "text.txt"
        self.text.write_text("".join(f"line {i} of a text that is long enough\n" for i in range(400)))
        self.run_dir = self.scratch / "run"

    def train(self, *arguments, **more):
        return self.run_program("trainer", "--run-dir", self.run_dir, *arguments, **more)

    def test_help_and_version(self):
        self.assert_help("trainer")

    def test_trains_and_writes_a_run(self):
        process = self.train("--data", self.text, *SMALL, "--json")
        self.assert_exit(process, common.OK)
        summary = json.loads(process.stdout)
        self.assertIsInstance(summary, dict)
        self.assertTrue((self.run_dir / "manifest.json").is_file())
        self.assertEqual(len(list(self.run_dir.glob("series.r0.h5"))), 1)
        self.assertTrue(list(self.run_dir.rglob("*.safetensors")))
        self.assert_nothing_half_written(self.run_dir)

    # --- metrics ----------------------------------------------------------------------------------
    def to_tensorboard(self, *arguments):
        script = common.ROOT / "samples" / "metrics" / "to_tensorboard.py"
        return subprocess.run([sys.executable, str(script), *map(str, arguments)], capture_output=True, text=True,
                              timeout=120)

    def test_what_is_no_run_makes_no_events(self):
        self.assert_refused(self.to_tensorboard(self.scratch / "nowhere"), common.BAD_FILE, "nowhere")
        self.assert_refused(self.to_tensorboard(self.text), common.BAD_FILE, "text.txt")

    @unittest.skipUnless(importlib.util.find_spec("tensorboard"), "tensorboard is not installed")
    def test_tensorboard_reads_the_same_numbers(self):
        from tensorboard.backend.event_processing import event_accumulator
        from tensorboard.util import tensor_util

        self.assert_exit(self.train("--data", self.text, *SMALL, "--eval-every", 3), common.OK)
        path = self.run_dir / "metrics.jsonl"
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        with path.open("a") as file:
            file.write('{"step": 8, "los')
        process = self.to_tensorboard(self.run_dir)
        self.assert_exit(process, common.OK)
        self.assertIn("8 steps, 1 lines that are not whole left out", process.stdout)
        events = event_accumulator.EventAccumulator(str(self.run_dir / "tensorboard"), {"tensors": 0})
        events.Reload()
        for name in ("loss", "lr", "grad_norm", "eval_loss"):
            read = [(e.step, float(tensor_util.make_ndarray(e.tensor_proto))) for e in events.Tensors(name)]
            wanted = [(row["step"], row[name]) for row in rows if name in row]
            self.assertEqual([step for step, _ in read], [step for step, _ in wanted])
            for (_, a), (_, b) in zip(read, wanted):
                self.assertAlmostEqual(a, b, delta=1e-6 * abs(b))
        self.assert_refused(self.to_tensorboard(self.run_dir), common.USAGE, "--out")

    # --- data -------------------------------------------------------------------------------------
    def test_no_data(self):
        self.assert_refused(self.train(*SMALL), common.USAGE, "--data")
        self.assertFalse(self.run_dir.exists())

    def test_missing_data(self):
        self.assert_refused(self.train("--data", self.scratch / "nowhere", *SMALL), common.BAD_FILE, "nowhere")
        self.assertFalse(self.run_dir.exists())

    def test_empty_data(self):
        empty = self.scratch / "empty.txt"
        empty.write_text("")
        self.assert_refused(self.train("--data", empty, *SMALL), common.BAD_FILE, "empty.txt")
        folder = self.scratch / "folder"
        folder.mkdir()
        self.assert_refused(self.train("--data", folder, *SMALL), common.BAD_FILE, "folder")
        self.assertFalse(self.run_dir.exists())

    def test_binary_file_is_refused_by_name(self):
        for name, data in (("nul.txt", b"\0" * 5000), ("latin.txt", "größe\n".encode("latin-1") * 500)):
            path = self.scratch / name
            path.write_bytes(data)
            self.assert_refused(self.train("--data", path, *SMALL), common.BAD_FILE, name, "UTF-8")
        self.assertFalse(self.run_dir.exists())

    def test_binary_file_in_a_folder_is_passed_over_aloud(self):
        folder = self.scratch / "folder"
        folder.mkdir()
        (folder / "text.txt").write_text(self.text.read_text())
        (folder / "broken.txt").write_bytes(b"\xff\xfe" * 4000)
        process = self.train("--data", folder, *SMALL)
        self.assert_exit(process, common.OK)
        self.assertIn("skipped", process.stderr)

    # --- settings ---------------------------------------------------------------------------------
    def config(self, text):
        path = self.scratch / "config.toml"
        path.write_text(text)
        return path

    def test_unknown_key_gets_the_nearest_known_one(self):
        for key, nearest in (("widht", "width"), ("warmup_ratoi", "warmup-ratio"), ("grad_clp", "grad-clip")):
            process = self.train("--config", self.config(f"{key} = 1\n"), "--data", self.text)
            self.assert_refused(process, common.USAGE, key, nearest)
        self.assertFalse(self.run_dir.exists())

    def test_config_that_is_missing_empty_or_not_toml(self):
        self.assert_refused(self.train("--config", "no.toml"), common.BAD_FILE, "no.toml")
        self.assert_refused(self.train("--config", self.config("")), common.BAD_FILE, "config.toml")
        self.assert_refused(self.train("--config", self.config("[model]\nwidth = 1\n")), common.USAGE, "[model]")

    def test_bad_values(self):
        for option, value in (("--width", "many"), ("--amp-dtype", "fp8"), ("--on-incident", "hope"), ("--norm", "none"),
                              ("--warmup-ratio", "2"), ("--heads", "7")):
            process = self.train("--data", self.text, *SMALL, option, value)
            self.assert_refused(process, common.USAGE, option.lstrip("-"))
        self.assertFalse(self.run_dir.exists())

    def test_unknown_option(self):
        self.assert_refused(self.train("--frobnicate"), common.USAGE, "--frobnicate")

    def test_device_that_is_not_there(self):
        self.assert_refused(self.train("--data", self.text, *SMALL, "--device", "tpu"), common.USAGE, "tpu")
        self.assert_refused(self.train("--data", self.text, *SMALL, "--device", "cuda:77"), common.USAGE, "cuda")
        self.assertFalse(self.run_dir.exists())

    # --- disks ------------------------------------------------------------------------------------
    def test_run_directory_that_is_a_file(self):
        self.run_dir.write_text("mine")
        self.assert_refused(self.train("--data", self.text, *SMALL), common.BAD_FILE, str(self.run_dir))
        self.assertEqual(self.run_dir.read_text(), "mine")

    def on_disk(self, script, size="2m", options=""):
        """Runs `script` (with $1 the mounted folder, $0's program in $2 …) on a separate disk."""
        if not common.can_mount():
            self.skipTest("this machine lets no test mount a disk of its own (unshare and mount tmpfs)")
        disk = self.scratch / "disk"
        disk.mkdir()
        command = [*common.inside_small_disk(script, size, options), str(disk), str(common.BIN / "nanquest-trainer"),
                   "--data", self.text, "--run-dir", disk / "run", *SMALL]
        return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=240)

    def test_read_only_run_directory(self):
        process = self.on_disk('disk="$1"; shift; "$@"; code=$?; ls -A "$disk" | sed "s/^/left: /"; exit $code',
                               options=",ro")
        self.assert_refused(process, common.BAD_FILE, "disk/run")
        self.assertNotIn("left:", process.stdout)

    def test_full_run_directory(self):
        """The disk fills up during training: reported, with the right code, and no temporary file remains."""
        process = self.on_disk('disk="$1"; shift; "$@"; code=$?; find "$disk" -type f -printf "left: %f %s\\n"; exit $code',
                               size="64k")
        self.assert_exit(process, common.BAD_FILE)
        # History that could not be written is a remark in the first step; weights that could not be written end the run.
        self.assertEqual([1, 1], [len([line for line in process.stderr.splitlines() if line.startswith(what) and "disk/run" in line])
                                  for what in ("no series is written: ", "nanquest-trainer: ")], process.stderr)
        left = [line for line in process.stdout.splitlines() if line.startswith("left: ")]
        self.assertFalse([line for line in left if ".tmp" in line or ".part" in line], left)
        self.assertFalse([line for line in left if line.split()[1].endswith(".safetensors")], left)

    # --- what happened on the way -----------------------------------------------------------------
    def test_survives_and_says_so(self):
        process = self.train("--data", self.text, *SMALL, "--inject", "nan-loss@3", "--policy", "skip")
        self.assert_exit(process, common.FINDING)
        self.assertGreater(common.incident_of(self.run_dir).stat().st_size, 0)

    def test_stops_when_told_to(self):
        process = self.train("--data", self.text, *SMALL, "--inject", "nan-loss@3", "--policy", "stop")
        self.assert_exit(process, common.NON_FINITE)
        self.assert_nothing_half_written(self.run_dir)

    def test_a_level_is_given_in_full(self):
        """Never lowered silently."""
        for level in ("trace", "watch"):
            process = self.train("--data", self.text, *SMALL, "--level", level)
            self.assert_exit(process, common.OK)
            manifest = json.loads((self.run_dir / "manifest.json").read_text())
            self.assertEqual(level, manifest["config"]["level"])
        self.assert_refused(self.train("--data", self.text, *SMALL, "--level", "loud"), common.USAGE, "level", "watch")

    def test_a_loss_scale_far_too_high_is_calibrated_at_every_level(self):
        """More halvings in a row than any limit: no incident, no fallback, the same weights."""
        weights = set()
        for level in ("off", "guard", "trace", "watch"):
            process = self.train("--data", self.text, *SMALL, "--level", level, "--json", "--amp-dtype", "fp16",
                                 "--init-scale", 2**24, "--init-std", 1, "--norm", "post", "--depth", 3,
                                 "--scale-growth-interval", 3)
            self.assert_exit(process, common.OK)
            summary = json.loads(process.stdout)
            first = [change for change in summary["loss_scale_history"] if change["step"] == 0]
            self.assertGreater(len(first), 8, "the run does not try what it is for")
            self.assertEqual((0, False, "fp16"), (summary["incidents"], summary["fell_back"], summary["precision"]))
            self.assertEqual(process.stderr.count("scale overflow, halved"),
                             sum(change["to"] < change["from"] for change in summary["loss_scale_history"]))
            weights.add(pathlib.Path(summary["files"]["final"]).read_bytes())
        self.assertEqual(len(weights), 1)


if __name__ == "__main__":
    common.main()
