"""--tape: the steps before an incident are in its file, and run again from it alone, bit for bit."""

import subprocess

from attached import BIN, PROGRAMS, AttachTest, main

PROGRAM, STEPS, KEPT = PROGRAMS / "diverges.py", 30, 8


class TapeTest(AttachTest):
    def rewound(self, *options):
        """Of a program whose learning rate is too large: its output, and the first incident's file."""
        process = self.observed(PROGRAM, STEPS, options=options)
        self.assert_exit(process)
        self.assertTrue(self.incidents(), process.stderr)
        self.assertNotIn("no tape", process.stderr)
        return process, self.incidents()[0]

    def test_the_incident_is_reached_bit_for_bit_from_many_steps_before(self):
        process, snapshot = self.rewound("--tape", KEPT)
        self.assertEqual(process.stdout, self.plain(PROGRAM, STEPS).stdout)
        bad = int(snapshot.name[5:13])
        self.assertGreater(bad, 2 * KEPT, "the anchors should have taken turns")
        said = self.replay("rewind", snapshot)
        self.assertTrue(said["reached"], said)
        self.assertEqual((said["mismatched"], said["failed_ops"], said["last_step"]), (0, 0, bad), said)
        self.assertGreaterEqual(bad - said["first_step"], KEPT, said)
        self.assertLessEqual(bad - said["first_step"], 2 * KEPT, said)
        self.assertGreater(said["outputs_compared"], 3, said)
        # Weights were stored once, as the anchor found them, and the step alone is as it was.
        self.assert_bit_exact(snapshot)

    def test_a_file_without_says_how_to_get_one(self):
        _, snapshot = self.rewound()
        process = subprocess.run([BIN / "nanquest-replay", "rewind", snapshot], text=True, capture_output=True)
        self.assertEqual(process.returncode, 3, process)
        self.assertIn("holds no tape", process.stderr)
        self.assertIn("--tape", process.stderr)

    def test_level_guard_has_none(self):
        process = self.observed(PROGRAM, 1, options=("--level", "guard", "--tape"))
        self.assertEqual(process.returncode, 2, process.stderr)
        self.assertIn("tape needs level trace or watch", process.stderr)


if __name__ == "__main__":
    main()
