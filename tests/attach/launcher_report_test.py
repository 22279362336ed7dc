"""What `nanquest run` says at its end: what it saw, or why it saw nothing and what to do. One line, never said twice."""

import json
import os
import signal
import subprocess
import sys
import unittest

from attached import BIN, PACKAGE, PROGRAMS, PackagesTest, by_day, importable, main, nightly

MLP = PROGRAMS / "mlp.py"
INSIDE = "import nanquest; nanquest.attach()"
KILLED = """
import os, sys, time
import torch
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step in range(30):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).sum().backward()
    optimizer.step()
{end}
"""


# What is said at the end of a run whose last update left everything bad: weights and moments of the program MLP.
LEFT_BAD = "at the end parameter 0.weight and 13 other weights, buffers and moments are still NaN or Inf"


class ReportTest(PackagesTest):
    def said(self, *command, code=0, options=(), run_dir="run", **more):
        """The probe's lines of a run."""
        process = self.nanquest("run", "--run-dir", run_dir, *options, "--", *command, **more)
        self.assert_exit(process, code)
        self.stdout = process.stdout
        return self.probes_lines(process)

    def assert_unseen(self, *command, says, code=0, **more):
        (line,) = self.said(*command, code=code, **more)
        self.assertTrue(line.startswith("nanquest: nothing was observed: "), line)
        for word in (*says, INSIDE):
            self.assertIn(word, line)
        self.assertFalse((self.scratch / "run").exists())

    def test_a_healthy_run(self):
        self.assertEqual(self.said(sys.executable, MLP, "sgd", 99, 0), ["nanquest: no incident in 8 steps"])

    def test_the_start_says_level_cost_and_folder(self):
        for level, says in (("guard", "no files"), ("trace", "files go to run"), ("watch", "files go to run")):
            process = self.nanquest("run", "--run-dir", "run", "--level", level, "--", sys.executable, "-c", "print(1)")
            first = process.stderr.splitlines()[0]
            self.assertTrue(first.startswith(f"nanquest: level {level}: "), first)
            for word in (" a CPU", says, "nanquest run --help"):
                self.assertIn(word, first)

    def test_a_program_that_a_signal_ended_before_it_trained(self):
        (line,) = self.said(sys.executable, "-c", "import os, torch; os.kill(os.getpid(), 15)", code=-signal.SIGTERM)
        self.assertEqual(line, "nanquest: nothing was observed: the program was ended by SIGTERM before it made a training step")

    def test_incidents_are_counted_once(self):
        lines = self.said(sys.executable, MLP, "sgd", 6, "nan", options=("--level", "watch"))
        self.assertIn("nanquest: step 6: ", lines[0])
        self.assertEqual(lines[2:], ["nanquest: 1 incident in 8 steps (1 later step only propagated these values); "
                                     f"{LEFT_BAD}; files in run (nanquest explain run)"])

    def test_several_processes(self):
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", 2]
        together = "torch.distributed.barrier()"
        (self.scratch / "ranks.py").write_text(f"import torch\ntorch.distributed.init_process_group('gloo')\n"
                                               + KILLED.format(end=together).replace("time.sleep(1.1)", together))
        self.assertEqual(self.said(*torchrun, "ranks.py"), ["nanquest: no incident in 2 processes of 30 steps each"])

    def test_one_event_on_two_ranks_is_one_incident(self):
        (self.scratch / "one_bad.py").write_text(
            "import torch\nfrom torch.nn.parallel import DistributedDataParallel\n"
            "torch.distributed.init_process_group('gloo')\nrank = torch.distributed.get_rank()\n"
            "torch.manual_seed(0)\nmodel = DistributedDataParallel(torch.nn.Linear(4, 1))\n"
            "optimizer = torch.optim.SGD(model.parameters(), 0.01)\n"
            "for step in range(5):\n"
            "    x = torch.rand(8, 4)\n"
            "    if (step, rank) == (3, 1):\n        x[2] = 0\n"
            "    optimizer.zero_grad()\n    (model(x).squeeze(1) / x.sum(1)).mean().backward()\n    optimizer.step()\n")
        lines = self.said(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", 2, "one_bad.py")
        self.assertRegex(lines[-1], r"^nanquest: 1 incident on 2 ranks in 2 processes of 5 steps each .*files in run \(nanquest explain run\)$")
        explained = json.loads(self.nanquest("explain", "run", "--json", NANQUEST_BIN=str(BIN)).stdout)
        self.assertEqual((explained["incidents"], explained["verdict"]["rank"]), (1, 1), "it began on rank 1")
        self.assertRegex(explained["incident"], r"step-00000003\.r1\.h5$")

    def test_a_program_that_was_stopped_below_a_launcher(self):
        # torchrun and accelerate launch end with 1, whatever their program ended with.
        launcher = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]) != 0)"
        program, options = (sys.executable, MLP, "sgd", 6, "nan"), ("--level", "guard", "--on-incident", "stop")
        self.assertIn("; stopped", self.said(sys.executable, "-c", launcher, *program, code=4, options=options)[0])
        self.said("sh", "-c", " ".join(map(str, program)) + " || exit 0", options=options)  # it has gone on
        self.said(sys.executable, "-c", launcher, sys.executable, MLP, "sgd", "no number", code=1, options=options)

    @nightly
    def test_several_programs(self):
        (self.scratch / "good.py").write_text(KILLED.format(end=""))
        lines = self.said("sh", "-c", f"{sys.executable} {MLP} sgd 6 nan; {sys.executable} good.py",
                          options=("--level", "watch"), run_dir="two")
        self.assertEqual(lines[-1], "nanquest: 1 incident in 2 processes with 38 steps (1 later step only propagated these values); "
                         f"{LEFT_BAD}; files in two (nanquest explain two)")

    @nightly
    def test_ranks_that_no_variable_tells(self):
        # As Lightning's Trainer starts its processes: without RANK.
        (self.scratch / "spawned.py").write_text(
            "import multiprocessing\nimport torch\n"
            "def train(rank, file):\n    import torch\n"
            "    torch.distributed.init_process_group('gloo', init_method=file, rank=rank, world_size=2)\n"
            + "".join(f"    {line}\n" for line in KILLED.format(end="torch.distributed.barrier()").splitlines())
            + "if __name__ == '__main__':\n"
            "    import os\n"
            "    torch.multiprocessing.spawn(train, ('file://' + os.path.abspath('meet'),), nprocs=2)\n")
        self.assertEqual(self.said(sys.executable, "spawned.py"), ["nanquest: no incident in 2 processes of 30 steps each"])
        self.assertEqual({p.name for p in (self.scratch / "run").glob("series*")}, {"series.r0.h5", "series.r1.h5"})

    def test_processes_without_a_last_word(self):
        ends = ("os._exit(7)", 7), ("os.kill(os.getpid(), 9)", -9), ("os.kill(os.getpid(), 15)", -15)
        for end, code in by_day(ends[:1], ends[1:]):
            with self.subTest(end):
                (self.scratch / "killed.py").write_text(KILLED.format(end=end))
                (line,) = self.said(sys.executable, "killed.py", code=code, run_dir=f"run{code}")
                self.assertRegex(line, r"^nanquest: no incident in at least (29|30) steps$")  # in much less than a second

    def test_a_killed_process_that_updates_by_hand(self):
        (self.scratch / "by_hand.py").write_text(KILLED.replace("optimizer.zero_grad()", "model.zero_grad()").replace(
            "optimizer.step()", "[p.data.add_(p.grad, alpha=-1e-2) for p in model.parameters()]").format(end="os.kill(os.getpid(), 9)"))
        (line,) = self.said(sys.executable, "by_hand.py", code=-9)
        self.assertRegex(line, r"^nanquest: no incident in at least (28|29|30) steps$")

    @nightly
    def test_a_process_that_stays_behind_speaks_for_itself(self):
        (self.scratch / "killed.py").write_text(KILLED.format(end="x = model(torch.full((1, 4), torch.nan)).sum(); "
                                                                  "optimizer.zero_grad(); x.backward(); optimizer.step()"))
        out = self.scratch / "behind"
        lines = self.said("sh", "-c", f"{sys.executable} killed.py 2> {out} & sleep 0.1")
        self.assertEqual(len(lines), 1)
        subprocess.run(["sh", "-c", f"until grep -q 'files in' {out}; do sleep 0.2; done"], timeout=60)
        self.assertIn("nanquest: 1 incident in 31 steps; files in run (nanquest explain run)\n", out.read_text())

    def test_a_program_without_torch(self):
        code = "import sys, json; print(json.dumps([1]), 'nanquest' in sys.modules, 'torch' in sys.modules)"
        self.assert_unseen(sys.executable, "-c", code, says=["torch was not imported"])
        self.assertEqual(self.stdout, "[1] False False\n")
        self.assertEqual(self.said(sys.executable, "-c", "1/0", code=1), [])

    def test_no_training(self):
        self.assert_unseen(sys.executable, "-c", "import torch; torch.ones(2).sum()", says=["torch was imported, but no training step"])
        (line,) = self.said(sys.executable, "-c", "import torch; torch.nn.Linear(2, 2)(torch.ones(2))")
        self.assertIn("torch was imported, but no training step", line)

    def test_pythons_that_keep_the_probe_out(self):
        for options, named in ((["-I"], "-I"), (["-E"], "-E"), (["-S"], "-S"), (["-X", "dev", "-uE"], "-E"), (["-BIc"], "-I")):
            with self.subTest(options):
                code = [] if options[-1].endswith("c") else ["-c"]
                self.assert_unseen(sys.executable, *options, *code, "print(1)", says=[f" {named} prevents the probe from loading"])
        for command in (["env", "-i", sys.executable, "-c", "print(1)"], ["sh", "-c", f"{sys.executable} -I -c 'print(1)'"], ["true"]):
            with self.subTest(command):
                self.assert_unseen(*command, says=["no Python process loaded the probe", "cleaned environment"])
        # Options of the program are not Python's.
        self.assert_unseen(sys.executable, "-c", "print(1)", "-I", says=["torch was not imported"])

    def test_attached_from_inside_where_the_launcher_can_not(self):
        code = (f"import sys; sys.path.insert(0, {str(PACKAGE)!r}); import nanquest; nanquest.attach(run_dir='mine', level='watch')\n"
                f"sys.argv[1:] = ['sgd', '4', 'nan']; exec(open({str(MLP)!r}).read())")
        lines = self.said(sys.executable, "-I", "-c", code)
        self.assertEqual(lines[-1], "nanquest: 1 incident in 8 steps (3 later steps only propagated these values); "
                         f"{LEFT_BAD}; files in mine (nanquest explain mine)")
        self.assertEqual(len([line for line in lines if "files in" in line]), 1, lines)

    def test_of_two_launchers_the_inner_one_speaks(self):
        inner = [sys.executable, "-m", "nanquest", "run", "--run-dir", "inner", "--"]
        self.assert_unseen(*inner, sys.executable, "-c", "print(1)", says=["torch was not imported"])

    @nightly
    def test_one_launcher_in_another(self):
        lines = self.said(sys.executable, "-m", "nanquest", "run", "--run-dir", "inner", "--", sys.executable, MLP, "sgd", 99, 0)
        self.assertEqual(lines, ["nanquest: no incident in 8 steps"])

    @nightly
    @unittest.skipUnless(importable("tqdm"), "tqdm is not installed")
    def test_lines_do_not_hang_on_to_a_progress_bar(self):
        (self.scratch / "bar.py").write_text(
            "import torch, tqdm\nmodel = torch.nn.Linear(4, 1)\n"
            "for step in tqdm.tqdm(range(4)):\n"
            "    model(torch.full((1, 4), torch.nan if step == 1 else 1.0)).sum().backward()\n"
            "    torch.optim.SGD(model.parameters(), lr=1e-2).step()\n")
        process = self.observed("bar.py")
        self.assert_exit(process)
        self.assertIn("\nnanquest: step 1: ", process.stderr)
        self.assertIn("/4 [", process.stderr)

    def test_a_command_that_does_not_start(self):
        (self.scratch / "text").write_text("no program")
        (self.scratch / "text").chmod(0o755)
        (line,) = self.said("./text", code=126)
        self.assertIn("./text: Exec format error", line)
        self.assertEqual(self.said("sh", "-c", "no-such-program-here", code=127), [])

    def test_nothing_is_left_behind_and_nothing_is_needed(self):
        temporary = self.scratch / "temporary"
        temporary.mkdir()
        self.said(sys.executable, "-c", "import torch", TMPDIR=str(temporary))
        self.assertEqual([name for name in os.listdir(temporary) if "nanquest" in name], [])
        # Where the processes can't tell anything, the run goes on as ever.
        ruins = "rm -r $NANQUEST_REPORTS", "echo '{' > $NANQUEST_REPORTS/1", "rm -r $NANQUEST_REPORTS; echo > $NANQUEST_REPORTS"
        for n, ruin in enumerate(by_day(ruins[:1], ruins[1:])):
            with self.subTest(ruin):
                lines = self.said("sh", "-c", f"{ruin}; exec {sys.executable} {MLP} sgd 99 0", run_dir=f"run{n}")
                self.assertEqual(len(lines), 1, lines)
                self.assertNotIn("Traceback", lines[0])

    def test_interrupted(self):
        process = subprocess.Popen([sys.executable, "-m", "nanquest", "run", "--run-dir", "run", "--", sys.executable, "-c",
                                    KILLED.format(end="print('trained', flush=True); time.sleep(60)")], cwd=self.scratch,
                                   text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.environment())
        self.assertEqual(process.stdout.readline(), "trained\n")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, -signal.SIGINT)
        self.assertTrue(errors.endswith("\nnanquest: no incident in 30 steps\n"), errors)


if __name__ == "__main__":
    main()
