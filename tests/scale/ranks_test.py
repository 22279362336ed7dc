"""The report on 4096 ranks of a step takes seconds: four files of real runs, and the rows of all others from the election
itself."""

import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "attach"))

from attached import BIN, AttachTest, main  # noqa: E402

RANKS, FIRST, STEP = 4096, 1365, 3
WHOLE = sorted((FIRST + behind) % RANKS for behind in (0, 1, RANKS // 2, RANKS - 1))


class ManyRanksTest(AttachTest):
    def told(self, *command):
        began = time.monotonic()
        done = subprocess.run([str(word) for word in command], cwd=self.scratch, text=True, capture_output=True, timeout=280)
        took = time.monotonic() - began
        print(f"{pathlib.Path(command[0]).name} {command[1]}: {took:.2f} s", file=sys.stderr)
        return done

    def test_ranks_of_a_run(self):
        for rank in (FIRST, *(rank for rank in WHOLE if rank != FIRST)):
            self.assert_exit(self.observed(HERE / "one_of_many.py", options=("--level", "watch"), RANK=str(rank), WORLD_SIZE=str(RANKS),
                                           NANQUEST_RUN_ID="many"))
        self.assertEqual([file.name for file in self.incidents()], [f"step-{STEP:08}.r{rank}.h5" for rank in WHOLE])
        held = subprocess.run([str(BIN / "tests" / "hold_elections"), "run", str(STEP), str(RANKS), *map(str, WHOLE)], cwd=self.scratch, text=True,
                              capture_output=True, timeout=280)
        self.assertEqual(held.stdout, f"0 of {RANKS - 4} would write a whole file\n", held.stderr)
        self.assertEqual(len(list((self.scratch / "run" / "incidents").glob("*.row"))), RANKS - 4)

        done = self.told(BIN / "nanquest-replay", "ranks", "-q", "--no-files", "run")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(f"step        {STEP}, ranks {', '.join(map(str, WHOLE))} of {RANKS} together\n", done.stdout)
        self.assertIn(f"FIRST       rank {WHOLE[0]}: aten::log", done.stdout)
        self.assertIn("ranks 0, 1, 2, 3, 4, 5, 6, 7, … left rows instead of files\n", done.stdout)
        self.assertNotIn("not there", done.stdout)

        done = self.told(BIN / "nanquest-replay", "run/incidents/" + self.incidents()[1].name, "-q", "--no-files", "--no-fixes", "--full")
        self.assertIn(f"{RANKS - 4} got it by a collective", " ".join(done.stdout.split()))

        done = self.told(BIN / "nanquest-replay", "collect", "run", "-o", "all")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"step {STEP}: ranks {', '.join(map(str, WHOLE))} of {RANKS}; ranks 0, 1, 2, 3, 4, 5, 6, 7, … left rows\n", done.stdout)

        for file in self.incidents():
            file.unlink()
        done = self.told(BIN / "nanquest-replay", "ranks", "-q", "run")
        self.assertEqual(done.returncode, 3, done.stdout)
        self.assertIn(f"step {STEP}: no rank's file; ranks 0, 1, 2, 3, 4, 5, 6, 7, … left rows; ranks {', '.join(map(str, WHOLE))} are not there",
                      done.stderr)


if __name__ == "__main__":
    main()
