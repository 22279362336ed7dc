"""Ranks of one step replayed together: their collectives really done, a bad value followed from the rank that made it; and files
scattered over nodes brought together.
"""

import json
import pathlib
import shutil
import subprocess

from together import TogetherTest

from attached import BIN, main, nightly

FLIP = BIN / "tests" / "flip_bit"


class RanksTest(TogetherTest):
    """Tests share what they look at: every program is run once."""

    @classmethod
    def setUpClass(cls):
        cls.shared = cls.shared_folder()

    def setUp(self):
        super().setUp()
        self.scratch = self.shared

    def ran(self, run, program, *arguments, ranks=2):
        """The run directory of a program with the probe."""
        if not (self.scratch / run).exists():
            self.program = program
            self.together(*arguments, f"{run}-weights", options=("--level", "watch", "--record-steps", "1"), run_dir=run, ranks=ranks)
        return self.scratch / run

    def two(self):
        return self.ran("run", "train.py", "ddp", "1")

    def three(self):
        return self.ran("three", "train.py", "ddp", "1", ranks=3)

    def replayed(self, *arguments, code=1):
        """What `nanquest-replay FILE…` says, as JSON."""
        done = subprocess.run([str(BIN / "nanquest-replay"), "-q", "--json", *map(str, arguments)], cwd=self.scratch, text=True,
                              capture_output=True, timeout=300)
        self.assertEqual(done.returncode, code, done.stderr + done.stdout)
        return json.loads(done.stdout)

    def text(self, *arguments):
        return subprocess.run([str(BIN / "nanquest-replay"), "-q", "--no-files", *map(str, arguments)], cwd=self.scratch, text=True,
                              capture_output=True, timeout=300).stdout

    def files(self, step, run="run", folder="incidents", ranks=2):
        files = [self.scratch / run / folder / f"step-{step:08}.r{rank}.h5" for rank in range(ranks)]
        for file in files:
            self.assertTrue(file.exists(), file)
        return files

    def all_follow(self, verdict, follows="exact"):
        for collective in verdict["collectives"]:
            self.assertEqual(collective["follows"], follows, collective)
            self.assertEqual([at["rank"] for at in collective["at"]], collective["ranks"], collective)
        return [collective["op"] for collective in verdict["collectives"]]

    def refused(self, *arguments, code, says):
        done = subprocess.run([str(BIN / "nanquest-replay"), "-q", *map(str, arguments)], cwd=self.scratch, text=True,
                              capture_output=True, timeout=300)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        self.assertIn(says, done.stderr)


    def test_ddp(self):
        self.two()
        files = self.files(3)

        verdict = self.replayed(*files)
        self.assertEqual((verdict["finding"], verdict["missing"]), ("rank", []), verdict)
        first = verdict["first"]
        self.assertEqual((first["rank"], first["op"], first["module"], first["value"]), (1, "aten::log", "", "-inf"), first)
        self.assertEqual(self.all_follow(verdict), ["c10d::broadcast_", "c10d::broadcast_", "c10d::allreduce_"])
        self.assertEqual([c["reduction"] for c in verdict["collectives"]], [None, None, "sum"])
        # Buffers were good; the gradients brought it to rank 0, whose own loss is good.
        self.assertEqual(verdict["path"], [{"collective": 2, "from": [1], "to": [0]}])
        shown = {one["rank"]: one for one in verdict["shown"]}
        names = ["0.weight", "0.bias", "2.weight", "2.bias", "3.weight", "3.bias"]
        self.assertEqual([(rank, shown[rank]["loss"], sorted(shown[rank]["gradients"])) for rank in (0, 1)],
                         [(0, False, sorted(names)), (1, True, sorted(names))])
        # Only by doing the sum anew can what is mended on rank 1 mend rank 0.
        self.assertEqual((verdict["proof"]["tried"], verdict["proof"]["healed"]), (True, True), verdict["proof"])
        kept = json.loads((files[0].parent / "step-00000003.ranks.json").read_text())
        self.assertEqual(kept, verdict)
        text = self.text(*files)
        self.assertIn("rank 1: aten::log", text)
        self.assertIn("rank 1 to rank 0 by c10d::allreduce_ (sum; ", text)
        self.assertIn("loss and gradients of ranks 0, 1 are finite", text)

        # The run directory, any order, and a healthy step.
        self.assertEqual(self.replayed("ranks", self.scratch / "run", "--no-files")["first"], first)
        self.assertEqual(self.replayed("ranks", *reversed(files), "--no-files")["path"], verdict["path"])
        healthy = self.replayed(*self.files(1, folder="recordings"), "--no-files", code=0)
        self.assertEqual((healthy["finding"], healthy["first"], healthy["shown"], healthy["path"]), ("none", None, [], []))
        self.assertIn("c10d::allreduce_", self.all_follow(healthy))

        self.refused(files[0], files[0], code=2, says="are both of rank 0")
        self.refused(files[0], self.files(1, folder="recordings")[1], code=2, says="is of step 1")
        self.refused(files[0], self.three() / "incidents" / "step-00000003.r1.h5", code=2, says="is of a run of 3 processes")
        self.refused("verfy", files[0], code=2, says='"verfy" is not a sub-command')
        self.tampered(files)

    def tampered(self, files):
        """One bit of what rank 0 recorded of the sum, of an element that is a number: found, and who it was."""
        healthy = self.files(1, folder="recordings")
        own = self.replayed(*healthy, "--no-files", code=0)
        index = next(c["at"][0]["index"] for c in own["collectives"] if c["op"] == "c10d::allreduce_")
        bent = self.scratch / "step-00000001.r0.h5"
        subprocess.run([str(FLIP), healthy[0], bent, f"trace/opaque/{index:06}/w0", "5", "3"], check=True, timeout=60)
        verdict = self.replayed(bent, healthy[1], "--no-files")
        wrong = [c for c in verdict["collectives"] if c["follows"] != "exact"]
        self.assertEqual([(c["op"], c["follows"]) for c in wrong], [("c10d::allreduce_", "differs")], verdict)
        one, other = wrong[0]["at"]
        self.assertEqual((one["rank"], one["follows"], other["follows"]), (0, "differs", "exact"), wrong)
        difference = one["first_difference"]
        self.assertEqual((difference["element"], difference["different"]), (5, 1), wrong)
        self.assertNotEqual(difference["recorded"], difference["computed"])
        self.assertIn("what rank 0 recorded does not follow from what ranks 0, 1 gave: element 5", self.text(bent, healthy[1]))


    @nightly
    def test_more_than_two(self):
        """Sums of three: in whatever order, within what that may change. And without the rank that did it."""
        self.three()
        files = self.files(3, "three", ranks=3)
        verdict = self.replayed(*files, "--no-files")
        self.assertEqual((verdict["first"]["rank"], verdict["proof"]["healed"]), (1, True), verdict)
        for collective in verdict["collectives"]:
            self.assertIn(collective["follows"], ("exact", "within"), collective)
        self.assertEqual(verdict["path"][-1]["from"], [1])
        self.assertEqual(sorted(rank for hop in verdict["path"] for rank in hop["to"]), [0, 2])

        without = self.replayed(files[0], files[2], "--no-files")
        self.assertEqual((without["finding"], without["first"], without["missing"]), ("unknown", None, [1]), without)
        self.assertIn("rank 1, whose file is not here, by c10d::allreduce_", without["came_from"])
        reduced = [c for c in without["collectives"] if c["op"] == "c10d::allreduce_"]
        self.assertEqual([(c["follows"], c["missing"]) for c in reduced], [("unknown", [1])], without)
        self.assertEqual(self.replayed(files[1], files[2], "--no-files")["first"]["rank"], 1)


    def test_fsdp2(self):
        self.ran("fsdp2", "sharded.py", "fsdp2", "batch")
        verdict = self.replayed(*self.files(5, "fsdp2"), "--no-files")
        first = verdict["first"]
        self.assertEqual((first["rank"], first["origin"]), (1, "input"), verdict)
        kinds = set(self.all_follow(verdict))
        self.assertEqual(kinds, {"c10d::_allgather_base_", "c10d::_reduce_scatter_base_", "_c10d_functional::all_reduce"}, kinds)
        self.assertEqual(verdict["path"][0]["to"], [0])
        self.assertEqual(verdict["collectives"][verdict["path"][0]["collective"]]["op"], "c10d::_reduce_scatter_base_")
        self.assertTrue(verdict["proof"]["healed"], verdict["proof"])

    def test_tensor_parallel(self):
        self.ran("tensor", "sharded.py", "tensor", "weight")
        self.ran("fsdp2", "sharded.py", "fsdp2", "batch")
        self.refused(self.files(5, "tensor")[0], self.files(5, "fsdp2")[1], code=2, says="are of two runs: their command is")
        verdict = self.replayed(*self.files(5, "tensor"), "--no-files")
        first = verdict["first"]
        self.assertEqual((first["rank"], first["origin"], first["tensor"]), (1, "parameter", "1.down.weight"), verdict)
        self.assertEqual(set(self.all_follow(verdict)), {"_c10d_functional::all_reduce"})
        path = verdict["path"][0]
        self.assertEqual((path["from"], path["to"]), ([1], [0]))
        self.assertTrue(verdict["proof"]["healed"], verdict["proof"])


    @nightly
    def test_groups_of_some_ranks(self):
        self.ran("groups", "groups.py", ranks=4)
        verdict = self.replayed(*self.files(2, "groups", ranks=4), "--no-files")
        first = verdict["first"]
        self.assertEqual((first["rank"], first["origin"]), (2, "input"), verdict)
        self.all_follow(verdict)
        groups = {tuple(c["ranks"]) for c in verdict["collectives"]}
        self.assertEqual(groups, {(0, 1), (2, 3), (0, 2), (1, 3)})
        # To the other of its pair, then from each to one of the other pair.
        self.assertEqual([(hop["from"], hop["to"]) for hop in verdict["path"]][0], ([2], [3]))
        self.assertEqual(sorted((hop["from"], hop["to"]) for hop in verdict["path"]), [([2], [0]), ([2], [3]), ([3], [1])])
        self.assertTrue(verdict["proof"]["healed"], verdict["proof"])

    def collect(self, *arguments, code=0):
        done = self.nanquest("collect", *arguments, NANQUEST_BIN=str(BIN))
        self.assert_exit(done, code)
        return done.stdout if code == 0 else done.stderr

    def tree(self, folder):
        return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(pathlib.Path(folder).rglob("*"))
                if path.is_file() and not path.name.startswith(".")}

    def test_scattered_files(self):
        run = self.two()
        nodes = [self.scratch / f"node{rank}" / "run" for rank in (0, 1)]  # what two machines would have
        for rank, node in enumerate(nodes):
            for path in run.rglob("*"):
                if path.is_file() and (f".r{rank}." in path.name or rank == 0 and path.name == "manifest.json"):
                    (node / path.relative_to(run)).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(path, node / path.relative_to(run))
        before = [self.tree(node) for node in nodes]

        said = self.collect(*nodes, "-o", "all")
        self.assertIn("step 3: ranks 0, 1 of 2\n", said)
        self.assertIn("step 1 (a recording): ranks 0, 1 of 2\n", said)
        self.assertEqual([self.tree(node) for node in nodes], before)  # copied, not moved
        both = self.tree(self.scratch / "all")
        manifest = both.pop("manifest.json"), before[0].pop("manifest.json")
        self.assertEqual(*map(json.loads, manifest))
        self.assertEqual(both, {**before[0], **before[1]})
        self.assertEqual(self.replayed("ranks", "all", "--no-files")["first"]["rank"], 1)

        self.assertIn("step 3: rank 1 of 2; rank 0 is not there\n", self.collect(nodes[1] / "incidents", "-o", "half"))
        self.assertIn("step 3: rank 0 of 2; rank 1 is not there\n", self.collect(self.files(3)[0], "-o", "one"))
        told = json.loads(self.collect(nodes[0], nodes[1], nodes[0], "--json", "-o", "told"))
        self.assertEqual(told["steps"][0], {"step": 3, "recording": False, "files": [0, 1], "rows": [], "missing": []})

        def refused(*arguments, says, code=2):
            entries = sorted(path.name for path in self.scratch.iterdir())
            err = self.collect(*arguments, code=code)
            self.assertIn(says, err)
            self.assertEqual(len(err.strip().splitlines()), 1, err)
            self.assertEqual(sorted(path.name for path in self.scratch.iterdir()), entries)  # nothing half-written

        refused(*nodes, "-o", "all", says="all is there already")
        other = self.scratch / "other" / "incidents"
        other.mkdir(parents=True)
        snapshot = "step-00000003.r1.h5"
        shutil.copy(nodes[0] / "incidents" / "step-00000003.r0.h5", other / snapshot)
        refused(nodes[1], other.parent, "-o", "new", says="and they differ")
        refused(other.parent, "-o", "new", says="is not what it is called", code=3)
        damaged = bytearray((nodes[1] / "incidents" / snapshot).read_bytes())
        damaged[len(damaged) // 2] ^= 4
        (other / snapshot).write_bytes(bytes(damaged))
        refused(nodes[0], other.parent, "-o", "new", says=snapshot, code=3)
        refused(self.scratch / "node0", "-o", "new", says="holds nothing of a run", code=3)
        refused(nodes[0], self.three() / "incidents" / "step-00000003.r2.h5", "-o", "new", says="of a run of 3 processes")


if __name__ == "__main__":
    main()
