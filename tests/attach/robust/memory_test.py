"""Memory: models that go are freed, a long run does not grow, and too little of it ends the probe, not the training.

At night the long runs are of 10 000 steps.
"""

import re

from robust import LEVELS, NIGHT, RobustTest, main

STEPS = 10000 if NIGHT else 1000
SOME_LEVELS = LEVELS if NIGHT else ("trace",)


class MemoryTest(RobustTest):
    def grown(self, process):
        found = re.search(r"^grown (-?[\d.]+)", process.stderr, re.M)
        self.assertTrue(found, process.stderr)
        return float(found.group(1))

    def test_models_that_go_are_freed(self):
        for level in SOME_LEVELS:
            with self.subTest(level):
                self.clear("run")
                # 1200² weights are 5.5 MiB, with gradients and moments 22: twenty kept models would be 440. What the last
                # steps overwrote is 17 a step, and resident memory alone moves by 60.
                process = self.assert_same("models_come_and_go", 40, 1200, level=level)
                self.assertLess(self.grown(process), 100)

    def test_a_long_run_does_not_grow(self):
        for level in SOME_LEVELS:
            with self.subTest(level):
                self.clear("run")
                process = self.assert_same("endurance", STEPS, -1, level=level, options=("--watch-every", "20"))
                self.assertEqual(self.assert_files(), [])
                self.assertEqual(self.steps_in_series(), list(range(STEPS)))
                self.assertLess(self.grown(process), 4, process.stderr)

    def test_a_run_that_stays_bad_does_not_grow(self):
        process = self.assert_same("endurance", STEPS, 5, level="trace")
        self.assertEqual(len(self.assert_files()), 1)
        self.assertIn(f"({STEPS - 6} later steps only propagated these values)", process.stderr)
        self.assertLess(self.grown(process), 4, process.stderr)
        self.assertLess(len(self.probes_lines(process)), 8, process.stderr)

    def smallest_room(self):
        """MiB in which the program lives by itself, whatever its allocator does: it depends on the machine."""
        def lives(room):
            return all(self.run_in((), self.program("tight"), f"memory:{room}").returncode == 0 for _ in range(4))
        room = next((room for room in range(64) if lives(room)), None)
        self.assertIsNotNone(room, "the program alone does not live in 63 MiB")
        return room

    def test_too_little_memory(self):
        smallest = self.smallest_room()
        # One MiB less or more decides by chance, with the probe and without: what malloc has left over differs.
        for more in (2, 4, 6, 12, 24, 40) if NIGHT else (6,):
            room = smallest + more
            with self.subTest(smallest=smallest, room=room):
                self.clear("run")
                process = self.assert_same("tight", f"memory:{room}", level="watch")
                for line in self.probes_lines(process):
                    self.assertRegex(line, "is off|not written|step [46]|incident")
                self.assert_files(killed=True)


if __name__ == "__main__":
    main()
