"""A rank that is killed, a store that is gone, a full disk on one rank, ranks of different versions, ranks that are started again: the
others do what they do without the probe, and their files can be read.
"""

import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import unittest

from together import HERE, TogetherTest, free_port

from attached import BIN, LIBRARY, NIGHT, main, nightly

sys.path.insert(0, str(HERE.parents[1] / "e2e"))
from common import can_mount, inside_small_disk  # noqa: E402

PROGRAM = HERE / "lost.py"


class LostTest(TogetherTest):
    def start(self, ranks, *arguments, options=None, run_dir="run", of_rank=None):
        """Each rank as a process of its own. `of_rank`: by rank, (what starts it, its run directory, what starts its program)."""
        port, running = free_port(), []
        for rank in range(ranks):
            before, place, inside = (of_rank or {}).get(rank, ((), run_dir, ()))
            probe = [] if options is None else [sys.executable, "-m", "nanquest", "run", "--run-dir", place, *options, "--"]
            environment = self.environment(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1",
                                           MASTER_PORT=port, NANQUEST_RUN_ID=f"test {os.getpid()} {run_dir}")
            running.append(subprocess.Popen([str(word) for word in (*before, *probe, *inside, sys.executable, PROGRAM, *arguments)],
                                            cwd=self.scratch, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment,
                                            start_new_session=True))
        self.addCleanup(self.end_all, running)
        return running

    @staticmethod
    def end_all(running):
        for process in running:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()

    @staticmethod
    def ended(running, seconds=200):
        """(exit codes, what was said on stderr), by rank."""
        errors = [process.communicate(timeout=seconds)[1] for process in running]
        return [process.returncode for process in running], errors

    def whole(self, run_dir="run"):
        """Ranks whose file of step 3 is there: each of them can be read, and is the step as it was."""
        ranks = []
        for file in self.incidents(run_dir):
            done = subprocess.run([str(BIN / "nanquest-replay"), "info", str(file)], text=True, capture_output=True, timeout=100)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assert_bit_exact(file)
            if "step-00000003" in file.name:
                ranks.append(int(file.name.split(".r")[1].split(".")[0]))
        return sorted(ranks)

    def ranks(self, *arguments, code=1):
        done = subprocess.run([str(BIN / "nanquest-replay"), "ranks", "-q", "--no-files", *map(str, arguments)], cwd=self.scratch, text=True,
                              capture_output=True, timeout=280)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout if code < 2 else done.stderr

    def killed_when(self, running, rank, seen, seconds=120):
        """Kills the processes of a rank in the moment in which `seen` is true."""
        until = time.monotonic() + seconds
        while not seen():
            self.assertLess(time.monotonic(), until, "it was not seen")
            self.assertIsNone(running[rank].poll(), "the rank has ended")
        os.killpg(running[rank].pid, signal.SIGKILL)

    def in_incidents(self, ending):
        folder = self.scratch / "run" / "incidents"

        def seen():
            try:
                return any(ending in name for name in os.listdir(folder))
            except FileNotFoundError:
                return False
        return seen


class KilledTest(LostTest):
    def test_in_the_step_of_the_incident(self):
        codes, errors = self.ended(self.start(2, "dies", "plain"))
        self.assertEqual(codes[1], -signal.SIGKILL, errors)
        seen, errors = self.ended(self.start(2, "dies", "seen", options=("--level", "watch")))
        self.assertEqual(seen[0], codes[0], errors)
        self.assertNotIn("the probe is off", errors[0])
        self.assertEqual(self.whole(), [0])
        said = self.ranks("run")
        self.assertIn("step        3, rank 0 of 2 together\n", said)
        self.assertIn("rank 1, whose file is not here, by c10d::allreduce_", said)
        self.assertIn("            rank 1 is not there\n", said)

    @nightly
    def test_while_its_file_is_written(self):
        """A file of 64 MB, so that writing it takes long enough."""
        for attempt in range(5):
            running = self.start(2, "ddp", "seen", 64, options=("--level", "trace"))
            self.killed_when(running, 1, self.in_incidents("step-00000003.r1.h5.tmp"))
            codes, errors = self.ended([running[0]])
            self.assertEqual(codes, [1], errors)  # the next step's collective: its peer is gone
            self.assertNotIn("nanquest", self.last_of_the_program(errors[0]))
            if self.whole() == [0]:
                break
            self.clear("run")  # it was quicker
        self.assertTrue(self.in_incidents("step-00000003.r1.h5.tmp")())
        self.assertIn("rank 1 is not there\n", self.ranks("run"))

    @staticmethod
    def last_of_the_program(err):
        return [line for line in err.splitlines() if line.strip() and not line.startswith("nanquest: ")][-1]

    @nightly
    def test_of_eight_the_first_in_the_election(self):
        """Rank 1 has said that it is its own, and is killed before its file is there."""
        for attempt in range(5):
            running = self.start(8, "ddp", "seen", 32, options=("--level", "watch"))
            self.killed_when(running, 1, self.in_incidents("step-00000003.first"))
            running.pop(1).communicate()
            codes, errors = self.ended(running)
            self.assertEqual(set(codes), {1}, errors)
            if not (self.scratch / "run" / "incidents" / "step-00000003.r1.h5").exists():
                break
            self.clear("run")
        self.assertEqual(self.whole(), [0, 2, 5])
        said = self.ranks("run")
        self.assertIn("ranks 1, 3, 4, 6, 7, whose files are not here, by c10d::allreduce_", said)
        self.assertIn("ranks 3, 4, 6, 7 left rows instead of files, which name rank 1 as the first\n", said)
        self.assertIn("rank 1 is not there\n", said)

    @nightly
    def test_of_eight_before_it_could_say_so(self):
        """No rank reports the fault as its own: after its patience every other rank writes its file."""
        codes, errors = self.ended(self.start(8, "dies", "plain"))
        self.assertEqual(codes[1], -signal.SIGKILL, errors)
        seen, errors = self.ended(self.start(8, "dies", "seen", options=("--level", "watch")))
        self.assertEqual([code for rank, code in enumerate(seen) if rank != 1], [code for rank, code in enumerate(codes) if rank != 1], errors)
        self.assertEqual(self.whole(), [0, 2, 3, 4, 5, 6, 7])
        self.assertIn("rank 1 is not there\n", self.ranks("run"))


class StoreTest(LostTest):
    """The process that holds the store is gone, and the program does not need it any more."""

    def check(self, way, *options):
        codes, errors = self.ended(self.start(2, way, "plain"))
        self.assertEqual(codes, [0, 0], errors)
        codes, errors = self.ended(self.start(2, way, "seen", options=options))
        self.assertEqual(codes, [0, 0], errors)
        self.assertNotIn("the probe is off", errors[1])
        self.assertTrue((self.scratch / "seen.done-1").exists())
        self.assertIn(1, self.whole())
        return errors[1]

    @nightly
    def test_it_is_gone_in_training(self):
        self.check("store", "--level", "watch")
        self.assertIn("rank 0 is not there\n", self.ranks("run"))

    @nightly
    def test_ranks_that_agree_on_what_they_leave_out(self):
        for way in ("store", "early"):
            with self.subTest(way):
                self.clear("run")
                err = self.check(way, "--level", "watch", "--on-incident", "skip")
                self.assertEqual(err.count("the ranks can't agree whether to leave updates out, so each decides for itself"), 1, err)
                self.assertEqual(err.count("step 3: batch skipped"), 1, err)
                import torch
                for name, value in torch.load(self.scratch / "seen.1").items():
                    self.assertTrue(bool(torch.isfinite(value).all()), name)

    @nightly
    def test_the_launcher_is_gone(self):
        for options in (("--level", "watch"), ("--level", "watch", "--on-incident", "skip")):
            with self.subTest(options):
                self.clear("run")
                command = [sys.executable, "-m", "nanquest", "run", "--run-dir", "run", *options, "--", sys.executable, "-m",
                           "torch.distributed.run", "--nproc-per-node", "2", "--master-port", free_port(), str(PROGRAM), "agent", "seen"]
                with open(self.scratch / "said", "w", encoding="utf-8") as said:
                    process = subprocess.Popen(command, cwd=self.scratch, stdout=said, stderr=said, env=self.environment(), start_new_session=True)
                    self.addCleanup(self.end_all, [process])
                    self.assertEqual(process.wait(timeout=120), -signal.SIGKILL)
                done = [self.scratch / f"seen.done-{rank}" for rank in (0, 1)]
                until = time.monotonic() + 60
                while not all(file.exists() for file in done) and time.monotonic() < until:
                    time.sleep(0.1)
                pids = [int(file.read_text()) for file in done]
                while any(pathlib.Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < until:
                    time.sleep(0.1)
                told = (self.scratch / "said").read_text()
                self.assertEqual([pid for pid in pids if pathlib.Path(f"/proc/{pid}").exists()], [], told)
                self.assertEqual(self.whole(), [1], told)
                for file in done:
                    file.unlink()


class FullDiskTest(LostTest):
    @nightly
    @unittest.skipUnless(can_mount(), "needs a mount of its own")
    def test_on_one_rank(self):
        codes, errors = self.ended(self.start(2, "ddp", "plain", 4))
        self.assertEqual(codes, [0, 0], errors)
        small = self.scratch / "small"
        small.mkdir()
        keep = 'sh -c \'"$@"; code=$?; rm -rf kept; cp -a small kept; exit $code\' sh "$@"'
        full = {1: ([*inside_small_disk(f"shift && {keep}", size="2m"), str(small)], "small", ())}
        codes, errors = self.ended(self.start(2, "ddp", "seen", 4, options=("--level", "watch"), of_rank=full))
        self.assertEqual(codes, [0, 0], errors)
        self.assert_same_bits("plain", "seen")
        told = [line for line in errors[1].splitlines() if line.startswith("nanquest: ")]
        self.assertTrue(any("snapshot not written" in line and "No space left" in line for line in told), errors[1])
        self.assertEqual(self.whole(), [0])
        self.assertEqual([p.name for p in (self.scratch / "kept").rglob("*") if ".tmp" in p.name or p.name.startswith("step-")], [])
        self.assertIn("rank 1 is not there\n", self.ranks("run"))


class VersionsTest(LostTest):
    @nightly
    def test_a_rank_without_the_probe(self):
        self.ended(self.start(2, "ddp", "plain"))
        without = {1: ((), "run", ("env", f"NANQUEST_ATTACH_LIBRARY={self.scratch}/gone.so"))}
        codes, errors = self.ended(self.start(2, "ddp", "seen", options=("--level", "watch"), of_rank=without))
        self.assertEqual(codes, [0, 0], errors)
        self.assert_same_bits("plain", "seen")
        self.assertEqual(len([line for line in errors[1].splitlines() if "nanquest: " in line]), 1, errors[1])
        self.assertIn("gone.so is missing", errors[1])
        self.assertEqual(self.whole(), [0])
        self.assertIn("rank 1 is not there\n", self.ranks("run"))

    def other_version(self):
        """The library of rank 1, as another release would be: it says so in its files."""
        other = self.scratch / "other"
        other.mkdir()
        data = LIBRARY.read_bytes()
        self.assertEqual(data.count(b"nanquest 0.1.0\0"), 1)
        (other / LIBRARY.name).write_bytes(data.replace(b"nanquest 0.1.0\0", b"nanquest 0.0.9\0"))
        shutil.copy(LIBRARY.with_suffix(".version"), other)
        return other / LIBRARY.name

    def test_ranks_of_two_versions(self):
        newer = {1: ((), "run", ("env", f"NANQUEST_ATTACH_LIBRARY={self.other_version()}"))}
        codes, errors = self.ended(self.start(2, "ddp", "seen", options=("--level", "watch"), of_rank=newer))
        self.assertEqual(codes, [0, 0], errors)
        self.assertEqual(self.whole(), [0, 1])
        said = self.ranks("run")
        self.assertIn("rank 1: aten::log", said)
        line = "not all ranks were recorded by the same: nanquest 0.0.9, torch "
        self.assertIn(line, said)
        self.assertRegex(said, r"nanquest 0\.0\.9, torch \S+: rank 1; nanquest 0\.1\.0, torch \S+: rank 0\n")
        done = self.nanquest("collect", "run", "-o", "all", NANQUEST_BIN=str(BIN))
        self.assert_exit(done)
        self.assertIn(line, done.stdout)
        self.assertIn("step 3: ranks 0, 1 of 2\n", done.stdout)


class StartedAgainTest(LostTest):
    def environment(self, **more):
        # PyTorch 2.15, with or without the probe: by the agent's store what is started again gets the addresses of those before it.
        return super().environment(TORCH_DISABLE_SHARE_RDZV_TCP_STORE="1", **more)

    def test_attempts_do_not_mix(self):
        command = [sys.executable, "-m", "nanquest", "run", "--run-dir", "run", "--level", "watch", "--", sys.executable, "-m",
                   "torch.distributed.run", "--nproc-per-node", "2", "--max-restarts", "1", "--standalone", str(PROGRAM), "again", "seen"]
        done = subprocess.run(command, cwd=self.scratch, text=True, capture_output=True, timeout=250, env=self.environment())
        self.assert_exit(done)
        self.assertNotIn("the probe is off", done.stderr)
        found = json.loads((self.scratch / "seen.found").read_text())
        self.assertGreater(len(found), 4)
        for path, digest in found.items():
            self.assertEqual(hashlib.sha256((self.scratch / path).read_bytes()).hexdigest(), digest, path)
        again = pathlib.Path("run") / "restart-1"
        for run in (pathlib.Path("run"), again):
            self.assertEqual(self.whole(run), [0, 1])
            said = json.loads(self.ranks(run, "--json"))
            self.assertEqual((said["first"]["rank"], said["missing"], said["proof"]["healed"]), (1, [], True), said)
            self.assertEqual({pathlib.Path(file["file"]).parent for file in said["files"]}, {run / "incidents"})
            self.assertEqual(json.loads((self.scratch / run / "manifest.json").read_text())["incidents"][0]["step"], 3)
        self.assertIn("2 incidents on 2 ranks in 4 processes", done.stderr)
        self.assertEqual([path.name for path in (self.scratch / "run").iterdir() if path.name.startswith("process-")], [])
        if not NIGHT:
            return
        # Another run in the same place: what was started again goes with the run that it belongs to.
        done = subprocess.run([*command[:-2], "ddp", "later"], cwd=self.scratch, text=True, capture_output=True, timeout=250, env=self.environment())
        self.assert_exit(done)
        self.assertFalse((self.scratch / again).exists())
        (earlier,) = (self.scratch / "run" / "earlier").iterdir()
        self.assertEqual(len(list((earlier / "restart-1" / "incidents").glob("*.h5"))), 2)


if __name__ == "__main__":
    main()
