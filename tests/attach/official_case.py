"""What the tests of programs as their projects publish them share: where they are found, the folder that stands in for the hub, and
the one comparison that all go through.

Programs are looked for in the folder NANQUEST_OFFICIAL, else in `official` of the set-up's cache: checkouts of transformers, accelerate,
nanoGPT, pytorch-lightning and pytorch-examples, and folders `packages*` with what they need besides the test packages. What is not
there is skipped, with the reason.
"""

import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from attached import HERE, PACKAGES, PackagesTest

CACHE = pathlib.Path(os.environ.get("NANQUEST_CACHE") or pathlib.Path.home() / ".cache" / "nanquest")
OFFICIAL = pathlib.Path(os.environ.get("NANQUEST_OFFICIAL") or CACHE / "official")
LAUNCH = ("-m", "accelerate.commands.launch", "--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no")
TORCHRUN = ("-m", "torch.distributed.run", "--nproc-per-node", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0")
TWO = (*LAUNCH, "--multi_gpu", "--num_processes", "2")  # on CPUs, as the program is told; without MPI that is the way
ONE = (*LAUNCH, "--cpu", "--num_processes", "1")
QUIET = ("--report_to", "none", "--logging_steps", "1", "--use_cpu", "True", "--disable_tqdm", "True")


def own_packages():
    """Folders `packages*`: what programs need besides the test packages."""
    return sorted(OFFICIAL.glob("packages*"))


def needs(program, *packages):
    """Skips where a program or a package is not to be had."""
    if not (OFFICIAL / program).exists():
        return unittest.skip(f"{OFFICIAL / program} is not there")
    places = [*own_packages(), pathlib.Path(PACKAGES or os.devnull)]
    missing = [name for name in packages if not any((place / name).exists() for place in places)]
    return unittest.skipIf(missing, f"{', '.join(missing)}: not in {OFFICIAL / 'packages'}*, nor in NANQUEST_TEST_PACKAGES")


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
    accelerators = 0  # so many processors stand in for as many accelerators, for programs that want some (official/witness)
    kills = False  # whether the launcher kills processes that have done their work
    home = "home"  # of what datasets prepares and finds again by its name alone

    @classmethod
    def setUpClass(cls):
        cls.shared = cls.shared_folder()

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
        if self.accelerators:
            found.update(ACCELERATORS=str(self.accelerators), PYTHONPATH=os.pathsep.join([str(HERE / "official" / "witness"), found["PYTHONPATH"]]))
        found["PYTHONPATH"] = os.pathsep.join([found["PYTHONPATH"], *map(str, own_packages())])
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
              step=None, rank=None):
        """`command` with the healthy settings, then, after poison(), with the bad ones, each with and without the probe; `culprit`:
        what the verdict must say. The step and the rank are those that the program itself went bad at. `output`: the option for
        the folder that gets the weights; None if its losses are to be compared. `step`: where it is an update that goes bad first. `rank`:
        that was given the bad sample, where its gradients are bad and its loss is not."""
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
                self.assert_quiet(seen, processes, steps)
        first = next(number for number, what in enumerate(told[0]) if what[1] == "bad")
        bad = [rank for rank in told if not finite(told[rank][first])]  # none: only gradients are bad
        if rank is not None:
            self.assertEqual(bad, [])
            bad = [rank]
        self.assertTrue(len(bad) == 1 or processes == 1, bad)
        self.assert_named(seen, first if step is None else step, *(bad or [0]), processes, culprit)

    def assert_quiet(self, process, processes, steps):
        """The one line of the probe's: no incident, in so many steps."""
        extent = f"{steps} steps" if processes == 1 else f"{processes} processes of {steps} steps each"
        lines = self.probes_lines(process)
        told = re.fullmatch(rf"nanquest: no incident in {processes} processes with at least (\d+) steps", "\n".join(lines))
        if self.kills and told:  # a killed process has reported all but its last step, and whether it would have gone on is unknown
            self.assertLessEqual(int(told[1]), processes * steps)
            self.assertGreater(int(told[1]), processes * steps * 9 // 10)
        else:
            self.assertEqual(lines, [f"nanquest: no incident in {extent}"], process.stderr)

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
            together = self.replay("ranks", self.scratch / "run-bad")
            self.assertEqual((together["finding"], together["first"]["rank"]), ("rank", rank), together)
            self.assertTrue(together["proof"]["healed"], together["proof"])
