"""A process that is killed at any moment leaves whole files, or none.
"""

import os

from robust import NIGHT, PROGRAMS, RobustTest, main

KILLS = 120 if NIGHT else 10


class KillTest(RobustTest):
    def test_every_file_is_whole(self):
        seed = int.from_bytes(os.urandom(3), "little")
        process = self.plain(PROGRAMS / "killed.py", KILLS, seed, seconds=60 + 10 * KILLS)
        self.assert_exit(process)
        incidents = 0
        for i in range(KILLS):
            with self.subTest(kill=i, seed=seed):
                found = self.assert_files(f"killed-{i}", killed=True)
                incidents += len(found)
                if found and i % 6 == 0:
                    self.assert_bit_exact(found[-1])
        self.assertGreater(incidents, 0)

    def test_a_run_after_it_in_the_same_directory(self):
        self.assert_exit(self.plain(PROGRAMS / "killed.py", 1, 1))
        process = self.observed(PROGRAMS / "interrupts.py", "between", "none", run_dir="killed-0")
        self.assert_exit(process)
        self.assertEqual([line for line in self.probes_lines(process) if "off" in line], [])
        self.assert_files("killed-0", killed=True)
        self.assertEqual(self.steps_in_series("killed-0"), list(range(10)))


if __name__ == "__main__":
    main()
