"""docs/testing.md names the tests of each guarantee: every test of this build stands in a row, and every name of a row is a test's.

    guarantees_test.py CTEST BUILD [--complete]      # asks ctest which tests there are; --complete: nothing is left out of this build
"""

import pathlib
import re
import subprocess
import sys
import unittest

CTEST, BUILD = sys.argv[1:3]
PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "testing.md"
# Built, or needed by others, without a guarantee of their own; those of GPUs and of the night may be absent here.
NO_TESTS = {"public_headers"}
OF_ALL = {"warm.start"}


def names_of_rows():
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ") and "`" in line]
    words = {word for row in rows for cell in row.split("|")[2:] for word in re.findall(r"`([^`]+)`", cell)}
    return {word for word in words if not re.search(r"^-|/|\s|\.py$", word)} - NO_TESTS


class Guarantees(unittest.TestCase):
    def test_every_test_serves_one_and_every_name_is_a_test(self):
        listed = subprocess.run([CTEST, "--test-dir", BUILD, "-N"], text=True, capture_output=True, check=True).stdout
        tests = set(re.findall(r"^ +Test +#\d+: (\S+)", listed, re.M))
        self.assertGreater(len(tests), 100)
        names = names_of_rows()
        self.assertEqual([], sorted(test for test in tests - OF_ALL if not any(re.search(name, test) for name in names)), "in no row")
        if "--complete" in sys.argv:
            self.assertEqual([], sorted(name for name in names if not any(re.search(name, test) for test in tests)), "no such test")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
