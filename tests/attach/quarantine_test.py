"""--quarantine: which samples made an incident, and that they are left out of the next run; said where that can't be."""

import os
import subprocess
import sys
import unittest

from attached import BIN, PROGRAMS, AttachTest, PackagesTest, by_day, importable, main

PROGRAM = PROGRAMS / "quarantine.py"
OPTIONS = ("--on-incident", "skip", "--quarantine", "bad.txt", "--level", "guard")


def steps(process):
    """(rows, loss) of every batch, as the program says."""
    lines = [line.split(" loss ") for line in process.stdout.splitlines() if " loss " in line]
    return [([int(row) for row in rows.split()], loss) for rows, loss in lines]


class QuarantineTest(AttachTest):
    def named(self, dataset="Rows[48]"):
        """Rows that the file names."""
        lines = [line.partition("#")[0].split() for line in (self.scratch / "bad.txt").read_text().splitlines()]
        lines = [line for line in lines if line]
        self.assertEqual({line[1] for line in lines}, {dataset} if lines else set())
        return [line[0] for line in lines]

    def write(self, *rows):
        (self.scratch / "bad.txt").write_text("".join(f"{row}\n" for row in rows))

    def run_it(self, how, *options, code=0):
        process = self.observed(PROGRAM, how, options=options or OPTIONS)
        self.assert_exit(process, code)
        self.assertNotIn("the probe is off", process.stderr)
        return process

    def test_samples_of_a_bad_step_are_named_and_left_out(self):
        for how in by_day(("workers", "accumulate"), ("plain", "ahead")):
            with self.subTest(how):
                (self.scratch / "bad.txt").unlink(missing_ok=True)
                first = self.run_it(how)
                drawn = [rows for rows, _ in steps(first)]
                (bad,) = [number for number, rows in enumerate(drawn) if 13 in rows]
                parts = drawn[bad - bad % 2:bad - bad % 2 + 2] if how == "accumulate" else [drawn[bad]]
                wanted = [row for part in parts for row in part]
                self.assertEqual(self.named(), [str(row) for row in wanted])
                self.assertIn(f"bad.txt: the {len(wanted)} samples of step", first.stderr)
                second = self.run_it(how)
                # The same program that leaves those rows out itself.
                self.assertEqual(steps(second), steps(self.plain(PROGRAM, how, ",".join(map(str, wanted)))))
                self.assertIn(f"{len(wanted)} of its {len(wanted)} samples were drawn and left out", second.stderr)
                self.assertIn("no incident in", second.stderr)

    def test_single_samples_and_comments(self):
        self.write("# found by hand", "13 # the broken one", "5 Rows[48]", "6 Rows[7]", "one two three")
        process = self.run_it("plain")
        self.assertEqual(steps(process), steps(self.plain(PROGRAM, "plain", "13,5")))
        self.assertIn("line 5 is not understood", process.stderr)
        self.assertIn("2 of its 3 samples were drawn and left out", process.stderr)

    @unittest.skipUnless((BIN / "nanquest-trainer").exists(), "the trainer is not built")
    def test_the_trainer_reads_what_was_written(self):
        self.run_it("plain")
        (self.scratch / "text.txt").write_text("some words " * 400)
        small = ("--steps", "1", "--depth", "1", "--width", "16", "--heads", "1", "--context", "32", "--eval-windows", "0")
        process = subprocess.run([BIN / "nanquest-trainer", "--data", "text.txt", *small, "--quarantine", "bad.txt"], cwd=self.scratch,
                                 text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100)
        self.assertEqual(process.returncode, 0, process.stdout)
        self.assertGreater(len(self.named()), 0)
        self.assertIn(f"bad.txt names {len(self.named())} samples", process.stdout)
        self.assertNotIn("not understood", process.stdout)

    def test_nothing_is_guessed(self):
        process = self.run_it("copied")
        self.assertEqual(self.named(), [])
        self.assertIn("are not known: batches are drawn ahead, and copied before the model gets them", process.stderr)
        self.assertIn("ids unknown: batches are drawn ahead", (self.scratch / "bad.txt").read_text())

    def test_where_nothing_can_be_left_out_it_is_said(self):
        self.write("13")
        process = self.run_it("iterable")
        self.assertIn("none of its 1 samples can be left out: no DataLoader of torch draws", process.stderr)
        self.assertEqual(process.stderr.count("can be left out"), 1)
        self.assertIn("ids unknown: no DataLoader of torch draws them by index", (self.scratch / "bad.txt").read_text())
        self.write("13 Columns[9]")
        process = self.run_it("rate", "--quarantine", "bad.txt")
        self.assertIn("it draws from Rows[48], they are of Columns[9]", process.stderr)

    def test_samples_that_the_program_names(self):
        self.run_it("named")
        self.assertEqual(self.named("nanquest.batch"), [f"row{row}" for row in range(8, 16)])
        self.assertIn("none of its 8 samples can be left out", self.run_it("named").stderr)

    def test_an_evaluation_keeps_its_samples(self):
        self.write("13")
        process = self.run_it("validates")
        self.assertEqual(process.stdout.count("validated on 48"), 6)
        self.assertNotIn(13, sum((rows for rows, _ in steps(process)), []))

    def test_weights_that_are_lost_are_no_batchs_fault(self):
        self.run_it("rate", "--quarantine", "bad.txt", "--level", "guard")
        self.assertFalse((self.scratch / "bad.txt").exists())

    def test_ranks_make_the_same_number_of_steps(self):
        """Rank 1 draws the odd rows; all of its second batch is left out, and none of rank 0's."""
        self.write(*range(17, 32, 2))
        import socket
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        command = [sys.executable, "-m", "nanquest", "run", "--run-dir", "run", *OPTIONS, "--", sys.executable, str(PROGRAM), "ddp"]
        group = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "NANQUEST_RUN_ID": f"test {os.getpid()}"}
        running = [subprocess.Popen(command, cwd=self.scratch, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                    env=self.environment(RANK=str(rank), LOCAL_RANK=str(rank), **group)) for rank in (0, 1)]
        self.addCleanup(lambda: [process.kill() for process in running])
        said = []
        for process in running:
            out, err = process.communicate(timeout=200)
            self.assertEqual(process.returncode, 0, err)
            said.append([line.split(" loss ")[0] for line in out.splitlines()])
        odd = [" ".join(str(row) for row in range(first, min(first + 16, 48), 2)) for first in (1, 17, 33)]
        self.assertEqual(len(said[0]), 3)
        self.assertEqual(said[1], [odd[0], odd[2], odd[2]])

    def test_a_file_that_can_not_be(self):
        for path, words in (("no/bad.txt", "no file can be made in"), (".", "this is not a file")):
            process = self.nanquest("run", "--quarantine", path, "--", sys.executable, PROGRAM, "plain")
            self.assert_exit(process, 2)
            self.assertIn(words, process.stderr)


@unittest.skipUnless(importable("transformers") and importable("accelerate"), "transformers or accelerate is not installed")
class TrainerTest(PackagesTest):
    def test_huggingface(self):
        program = PROGRAMS / "trainer_huggingface.py"
        for callback in by_day((("callback",),), ((),)):
            with self.subTest(callback):
                self.clear("run")
                (self.scratch / "bad.txt").unlink(missing_ok=True)
                self.assert_exit(self.observed(program, *callback, options=OPTIONS))
                lines = [line for line in (self.scratch / "bad.txt").read_text().splitlines() if line[0] != "#"]
                self.assertEqual(len(lines), 4)
                self.assertIn("13 Rows[32]", [line.partition("  #")[0] for line in lines])
                second = self.observed(program, *callback, options=OPTIONS)
                self.assert_exit(second)
                self.assertIn("no incident in 7 steps", second.stderr)
                self.assertIn("4 of its 4 samples were drawn and left out", second.stderr)


if __name__ == "__main__":
    main()
