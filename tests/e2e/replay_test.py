"""nanquest-replay on the demo's incident, whole and damaged."""

import json
import os
import shutil
import subprocess

import common


class Replay(common.ProgramTest):
    def setUp(self):
        super().setUp()
        self.snapshot = self.scratch / "step-00000001.r0.h5"
        shutil.copy(common.incident_of(common.STORY), self.snapshot)

    def test_help_and_version(self):
        self.assert_help("replay")

    def test_json_is_the_contract(self):
        process = self.run_program("replay", self.snapshot, "--json")
        self.assert_exit(process, common.FINDING)
        verdict = json.loads(process.stdout)
        self.assertEqual((verdict["format"], verdict["version"]), ("nanquest.verdict", 2))
        self.assertIs(verdict["reproduction"]["bit_exact"], True)
        self.assertEqual(verdict["reproduction"]["basis"], "every_output")
        for key in ("step", "rank", "phase", "culprit", "origin", "cause", "confidence", "explanation", "precision",
                    "evidence", "counterfactuals", "fix", "not_tested", "blame", "claims", "root"):
            self.assertIn(key, verdict)
        written = json.loads(self.snapshot.with_suffix(".json").read_text())
        self.assertEqual(written["culprit"], verdict["culprit"])

    def test_idle_threads_sleep(self):
        """OpenMP says itself what it was told; who has set it is left alone."""
        for given, said in (({}, "PASSIVE"), ({"OMP_WAIT_POLICY": "active"}, "ACTIVE"), ({"GOMP_SPINCOUNT": "7"}, "'7'")):
            clean = {k: v for k, v in os.environ.items() if k not in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")}
            shown = subprocess.run([common.BIN / "nanquest-replay", "--version"], capture_output=True, text=True,
                                   env={**clean, **given, "OMP_DISPLAY_ENV": "verbose"}, timeout=60)
            self.assertIn(said, "".join(line for line in shown.stderr.splitlines() if "WAIT_POLICY" in line or "SPINCOUNT" in line))

    def test_same_verdict_twice(self):
        """Replay depends on the file only: nothing of the first run changes the second."""
        first = self.run_program("replay", self.snapshot, "--json")
        second = self.run_program("replay", self.snapshot, "--json")
        self.assertEqual(json.loads(first.stdout)["culprit"], json.loads(second.stdout)["culprit"])
        self.assertEqual(json.loads(first.stdout)["cause"], json.loads(second.stdout)["cause"])

    def test_snapshot_is_not_changed(self):
        before = self.snapshot.read_bytes()
        self.run_program("replay", self.snapshot)
        self.assertEqual(self.snapshot.read_bytes(), before)
        self.assert_nothing_half_written(self.scratch)

    def test_snapshot_on_a_read_only_disk(self):
        """The verdict needs no writable place: it is printed, with a line about what could not be written."""
        if not common.can_mount():
            self.skipTest("this machine lets no test mount a disk of its own (unshare and mount tmpfs)")
        disk = self.scratch / "disk"
        disk.mkdir()
        script = 'cp "$2" "$1/step-00000001.r0.h5" && mount -o remount,ro "$1" && "$3" "$1/step-00000001.r0.h5" --json'
        command = [*common.inside_small_disk(script, size="1g"), disk, self.snapshot, common.BIN / "nanquest-replay"]
        process = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=240)
        self.assert_exit(process, common.FINDING)
        self.assertIs(json.loads(process.stdout)["reproduction"]["bit_exact"], True)
        self.assertIn("warning", process.stderr)
        self.assertIn("step-00000001.r0.json", process.stderr)

    def test_missing_snapshot(self):
        self.assert_refused(self.run_program("replay", "nowhere.h5"), common.BAD_FILE, "nowhere.h5")

    def test_not_a_snapshot(self):
        for name, data in (("empty.h5", b""), ("text.h5", b"hello\n" * 100), ("zeros.h5", b"\0" * 100000)):
            path = self.scratch / name
            path.write_bytes(data)
            self.assert_refused(self.run_program("replay", path), common.BAD_FILE, name)
        self.assert_refused(self.run_program("replay", self.scratch), common.BAD_FILE, str(self.scratch))

    def test_truncated_snapshot(self):
        data = self.snapshot.read_bytes()
        for share in (0.01, 0.3, 0.7, 0.99):
            self.snapshot.write_bytes(data[:int(len(data) * share)])
            self.assert_refused(self.run_program("replay", self.snapshot), common.BAD_FILE, self.snapshot.name)
        self.snapshot.write_bytes(data[:-1])
        self.assert_refused(self.run_program("replay", self.snapshot), common.BAD_FILE, self.snapshot.name)
        self.assertEqual([path.name for path in self.scratch.iterdir()], [self.snapshot.name])

    def test_flipped_bits(self):
        data = bytearray(self.snapshot.read_bytes())
        for share in (0.1, 0.5, 0.9):
            damaged = bytearray(data)
            damaged[int(len(data) * share)] ^= 0x40
            self.snapshot.write_bytes(damaged)
            self.assert_refused(self.run_program("replay", self.snapshot), common.BAD_FILE, self.snapshot.name)

    def test_no_snapshot_given(self):
        self.assert_refused(self.run_program("replay"), common.USAGE, "--help")

    def test_unknown_option(self):
        self.assert_refused(self.run_program("replay", self.snapshot, "--frobnicate"), common.USAGE, "--frobnicate")


if __name__ == "__main__":
    common.main()
