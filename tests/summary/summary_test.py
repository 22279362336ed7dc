"""The summary of a run of ctest, on a small project with tests that pass, fail, and are too slow."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import summary  # noqa: E402

PROJECT = """cmake_minimum_required(VERSION 3.25)
project(some NONE)
enable_testing()
add_test(NAME quick COMMAND "${CMAKE_COMMAND}" -E echo fine)
add_test(NAME long COMMAND sleep 0.3)
add_test(NAME wrong COMMAND sh -c "cat ${CMAKE_SOURCE_DIR}/said; exit 1")
set_tests_properties(quick long PROPERTIES LABELS "unit;some room")
"""
SAID = """[==========] Running 3 tests from 1 test suite.
[----------] 3 tests from Suite
[ RUN      ] Suite.Good
what it says
[       OK ] Suite.Good (0 ms)
[ RUN      ] Suite.Bad
file.cpp:3: Failure
Expected < & is
[  FAILED  ] Suite.Bad (1 ms)
[ RUN      ] Suite.Crashes
"""


class SummaryTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        source, build = pathlib.Path(scratch.name, "source"), pathlib.Path(scratch.name, "build")
        source.mkdir()
        (source / "CMakeLists.txt").write_text(PROJECT)
        (source / "said").write_text(SAID)
        subprocess.run(["cmake", "-S", source, "-B", build], check=True, capture_output=True)
        subprocess.run(["ctest", "--test-dir", build, "--output-junit", build / "tests.xml"], capture_output=True)
        said = subprocess.run([sys.executable, HERE / "summary.py", build], capture_output=True, text=True)
        assert said.returncode == 0, said.stderr
        cls.lines = said.stdout.splitlines()

    def test_slowest_first(self):
        self.assertIn("slowest of 3 tests", self.lines[0])
        self.assertRegex(self.lines[1], r"^ +0\.[3-9]  long$")

    def test_sum_by_label(self):
        at = next(n for n, line in enumerate(self.lines) if line.startswith("the sum by label"))
        self.assertEqual({line.split("  ")[-1] for line in self.lines[at + 1:at + 3]}, {"unit", "some room"})
        self.assertRegex(self.lines[at + 1], r"^ +0\.[3-9]  ")

    def test_what_failed_and_nothing_of_what_passed(self):
        at = next(n for n, line in enumerate(self.lines) if line.startswith("failed: wrong"))
        self.assertEqual(self.lines[at + 1:], ["  [ RUN      ] Suite.Bad", "  file.cpp:3: Failure", "  Expected < & is",
                                               "  [  FAILED  ] Suite.Bad (1 ms)", "  [ RUN      ] Suite.Crashes"])

    def test_no_more_than_the_slowest(self):
        cases = "".join(f"<testcase name='t{n}' time='{n}' status='run'/>" for n in range(50))
        lines = summary.summary(f"<testsuite>{cases}</testsuite>", {"t49": ["unit"]})
        self.assertEqual(lines[1].split(), ["49.0", "t49"])
        self.assertEqual(len(lines), 1 + summary.SLOWEST + 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
