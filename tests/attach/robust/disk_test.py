"""A full disk, a limit on file sizes, a directory that can't be written, from the start or later: one line, and training goes on."""

import os
import pathlib
import subprocess
import sys
import unittest

from robust import HERE, RobustTest, main, nightly

sys.path.insert(0, str(HERE.parents[1] / "e2e"))
from common import can_mount, inside_small_disk  # noqa: E402


class DiskTest(RobustTest):
    def assert_goes_on(self, quarters, *words, prefix=(), lines=6, level="watch"):
        process = self.assert_same("tight", quarters, prefix=prefix, level=level)
        told = self.probes_lines(process)
        self.assertTrue(told, "nobody was told")
        self.assertLessEqual(len(told), lines, process.stderr)
        for word in words:
            self.assertTrue(any(word in line for line in told), f"{word!r} is not in: {process.stderr}")
        return process

    @nightly
    def test_a_limit_on_file_sizes(self):
        # The snapshot holds the weights, 4 MiB: it does not fit, everything else does.
        self.assert_goes_on("file:2000", "snapshot not written")
        self.assertEqual(self.assert_files(), [])

    @nightly
    def test_no_room_at_all(self):
        self.assert_goes_on("file:0", "off")

    @unittest.skipUnless(can_mount(), "needs a mount of its own")
    def test_a_full_disk(self):
        (self.scratch / "run").mkdir()
        keep = 'sh -c \'"$@"; code=$?; rm -rf kept; cp -a run kept; exit $code\' sh "$@"'
        prefix = [*inside_small_disk(f"shift && {keep}", size="4m"), str(self.scratch / "run")]
        self.assert_goes_on("none", "snapshot not written", prefix=prefix)
        self.assertEqual(self.assert_files("kept"), [])
        self.assertEqual(self.steps_in_series("kept"), list(range(9)))

    @unittest.skipUnless(can_mount(), "needs a mount of its own")
    def test_a_disk_without_room_for_the_series(self):
        (self.scratch / "run").mkdir()
        prefix = [*inside_small_disk('shift && "$@"', size="1m"), str(self.scratch / "run")]
        self.assert_goes_on("none", "no series is written", "No space left", prefix=prefix)

    @unittest.skipUnless(can_mount(), "needs a mount of its own")
    def test_a_directory_that_can_only_be_read(self):
        (self.scratch / "run").mkdir()
        prefix = [*inside_small_disk('shift && "$@"', size="2m", options=",ro"), str(self.scratch / "run")]
        process = self.assert_goes_on("none", "the probe is off", prefix=prefix, lines=1)
        self.assertIn("ead-only", process.stderr)
        self.assertEqual(list((self.scratch / "run").iterdir()), [])

    def test_a_directory_that_goes_away(self):
        self.assert_goes_on(f"replace:{self.scratch / 'run'}", "snapshot not written")

    def test_a_file_in_place_of_the_directory(self):
        (self.scratch / "run").write_text("in the way")
        self.assert_goes_on("none", "the probe is off", lines=1)
        self.assertEqual((self.scratch / "run").read_text(), "in the way")


if __name__ == "__main__":
    main()
