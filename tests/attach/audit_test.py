"""`nanquest run --audit N`: a step in which one bit was wrong is found, with the bit; healthy steps leave nothing."""

import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from attached import BIN, PACKAGE, PROGRAMS, AttachTest, main  # noqa: E402

FLIPS = PROGRAMS / "flips.py"
NAMES = pathlib.Path(__file__).parent.parent / "golden" / "step_names.txt"


class AuditTest(AttachTest):
    def audited(self, steps, wrong, *options, launcher=()):
        process = self.observed(*launcher, FLIPS, steps, wrong, options=options, NANQUEST_BIN=str(BIN))
        self.assert_exit(process)
        self.recorded_lines = [line for line in process.stderr.splitlines() if "recorded as asked" in line]
        return [line for line in process.stderr.splitlines() if "audit" in line]

    def test_the_steps_of_files_by_their_names(self):
        sys.path.insert(0, str(PACKAGE))
        from nanquest.base import run_directory
        folder = self.scratch / "run" / "recordings"
        folder.mkdir(parents=True)
        lines = [line.split() for line in NAMES.read_text().splitlines() if not line.startswith("#")]
        for name, step in lines:
            self.assertEqual(run_directory.step_of(str(folder / name)), None if step == "-" else int(step), name)
            (folder / name).touch()
        found = run_directory.snapshots(str(self.scratch / "run"), "incidents", "recordings")
        self.assertEqual([pathlib.Path(path).name for path in found], sorted(name for name, step in lines if step != "-"))

    def left(self):
        return sorted(path.name for path in (self.scratch / "run" / "recordings").glob("*"))

    def test_one_wrong_bit_is_found_with_its_operation_and_element(self):
        lines = self.audited(13, 8, "--audit", "4")
        self.assertEqual((len(lines), self.recorded_lines), (2, []), lines)
        for part in ("step 8: HARDWARE: aten::tanh in 1 ", "element [1, 5], bit 20"):  # element 13 of 16 x 8
            self.assertIn(part, lines[0])
        self.assertIn("2 of 3 steps came back bit for bit; 1 HARDWARE", lines[1])
        self.assertEqual(self.left(), ["step-00000008.r0.audit.json", "step-00000008.r0.h5"])
        found = json.loads((self.scratch / "run" / "recordings" / "step-00000008.r0.audit.json").read_text())
        explained = self.nanquest("explain", "run", "--json")
        self.assert_exit(explained, 1)
        self.assertEqual([(row["step"], row["label"]) for row in json.loads(explained.stdout)["findings"]], [(8, "HARDWARE")])
        self.assertEqual((found["answer"], found["op"]["name"], found["bit"]["element"], found["bit"]["bit"]), ("HARDWARE", "aten::tanh", 13, 20))

    def test_of_two_ranks_the_one_that_was_wrong_is_named(self):
        two = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
        lines = self.audited(7, 4, "--audit", "4", launcher=two)
        self.assertEqual((len(lines), self.recorded_lines), (2, []), lines)
        for part in ("step 4 of rank 1: HARDWARE: aten::tanh in ", "element [1, 5], bit 20"):
            self.assertIn(part, lines[0])
        self.assertIn("1 of 2 steps of 2 ranks came back bit for bit; 1 HARDWARE", lines[1])
        self.assertEqual(self.left(), ["step-00000004.r1.audit.json", "step-00000004.r1.h5"])

    def test_healthy_steps_leave_nothing_but_what_was_asked_for(self):
        lines = self.audited(13, 99, "--audit", "4", "--record-steps", "3,4")
        self.assertEqual([line.partition("audit: ")[2] for line in lines], ["3 of 3 steps came back bit for bit"])
        self.assertEqual(len(self.recorded_lines), 2)
        self.assertEqual(self.left(), ["step-00000003.r0.h5", "step-00000004.r0.h5"])
        # Without hashes of every output nothing is claimed; nor for another environment.
        self.clear("run")
        self.assert_exit(self.observed(FLIPS, 7, 5, options=("--record-steps", "5", "--watch-every", "0")))
        done = subprocess.run([str(BIN / "nanquest-replay"), "audit", "--json", str(self.scratch / "run/recordings/step-00000005.r0.h5")],
                              text=True, capture_output=True, timeout=300)
        self.assertEqual((done.returncode, json.loads(done.stdout)["answer"]), (1, "UNKNOWN"), done.stdout)


if __name__ == "__main__":
    main()
