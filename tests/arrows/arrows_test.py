"""cmake/check_arrows.py on small trees: what it must refuse, and what it must let pass."""
import os
import subprocess
import sys
import tempfile
import time
import unittest

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "cmake", "check_arrows.py")
ROOMS = """
probe/base  ->
probe/low   -> probe/base
probe/high  -> probe/low
probe       -> probe/low
trainer/a   -> probe
trainer/b   -> trainer/a
"""


class Arrows(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        self.write("cmake/rooms.txt", ROOMS)
        self.write("probe/nanquest.h", '#include "probe/low/public.h"\n')
        self.write("probe/low/public.h", "#pragma once\n")
        self.write("probe/low/private.h", "#pragma once\n")
        self.write("probe/high/high.h", '#include "probe/low/private.h"\n#include <vector>\n')

    def write(self, path, text):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def check(self, *options):
        done = subprocess.run([sys.executable, SCRIPT, self.root, *options], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1 if done.stderr else 0, done.stderr)
        return done.stderr

    def refused(self, words, *options):
        self.assertIn(words, self.check(*options))

    def test_a_tree_that_keeps_to_the_arrows(self):
        self.write("trainer/b/b.cpp", '#include "trainer/a/a.h"\n#include "probe/nanquest.h"\n')
        self.write("trainer/a/a.h", '#include "probe/low/public.h"\n')
        self.assertEqual(self.check("--strict"), "")

    def test_an_include_against_an_arrow(self):
        self.write("probe/low/low.cpp", '  #  include "probe/high/high.h"\n')
        self.refused("probe/low may not use probe/high")

    def test_a_cuda_source_and_angle_brackets_count_too(self):
        self.write("probe/low/low.cu", "#include <probe/high/high.h>\n")
        self.refused("probe/low may not use probe/high")

    def test_a_user_of_the_public_header_does_not_see_private_ones(self):
        self.write("trainer/b/b.cpp", '#include "probe/low/private.h"\n')
        self.refused("trainer/b may not use probe/low")

    def test_the_public_header_has_arrows_too(self):
        self.write("probe/nanquest.h", '#include "probe/high/high.h"\n')
        self.refused("probe may not use probe/high")

    def test_a_folder_without_a_line(self):
        self.write("probe/new/new.cpp", "")
        self.refused("the room probe/new has no line")

    def test_arrows_in_a_circle_and_to_nowhere(self):
        self.write("cmake/rooms.txt", ROOMS.replace("probe/base  ->", "probe/base -> probe/high"))
        self.refused("run in a circle: ")
        self.write("cmake/rooms.txt", ROOMS.replace("probe/base  ->", "probe/base -> probe/nowhere"))
        self.refused("there is no line for probe/nowhere")

    def test_an_exception_holds_while_it_is_needed(self):
        offender = self.write("probe/low/low.cpp", '#include "probe/high/high.h"\n')
        self.write("cmake/rooms.txt", ROOMS + "probe/low ~> probe/high: it moves\n")
        self.assertEqual(self.check("--strict"), "")
        os.remove(offender)
        self.assertEqual(self.check(), "")
        self.refused("nothing needs the exception probe/low ~> probe/high", "--strict")
        self.write("cmake/rooms.txt", ROOMS + "probe/low ~> probe/high\n")
        self.refused("an exception needs a reason")

    def test_python_modules_keep_to_the_arrows(self):
        self.write("cmake/rooms.txt", ROOMS + "nanquest/low ->\nnanquest/high -> nanquest/low\nnanquest -> nanquest/high\n")
        package = "probe/attach/python/nanquest"
        self.write(f"{package}/__init__.py", "def attach():\n    from .high import a\n")
        self.write(f"{package}/low/__init__.py", "")
        self.write(f"{package}/high/__init__.py", "")
        self.write(f"{package}/low/c.py", "import torch\n")
        self.write(f"{package}/high/b.py", "from ..low.c import something\n")
        self.write(f"{package}/high/a.py", "from . import b\nfrom ..low import c\n")
        self.assertEqual(self.check("--strict"), "")
        for line in ("from ..high import a", "from ..high.a import name", "import nanquest.high.a", "def late():\n    from nanquest.high import a"):
            self.write(f"{package}/low/c.py", line + "\n")
            self.refused("nanquest/low may not use nanquest/high")
        self.write(f"{package}/low/c.py", "")
        self.write(f"{package}/high/b.py", "def late():\n    from .a import name\n")
        self.refused("in a circle: nanquest.high.a -> nanquest.high.b -> nanquest.high.a")
        self.write(f"{package}/high/b.py", "")
        self.write(f"{package}/new/d.py", "from ..low import c\n")
        self.refused("nanquest/new may not use nanquest/low")

    def test_links_are_arrows(self):
        def links(*lines):
            return "--links", self.write("links.txt", "".join(line + "\n" for line in lines))
        self.assertEqual(self.check(*links("high|probe/high|low|probe/low", "trainer|trainer|probe|probe")), "")
        self.refused("low links high", *links("low|probe/low|high|probe/high"))
        self.refused("trainer links low", *links("trainer|trainer|low|probe/low"))

    def test_a_new_file_makes_the_stamp_old(self):
        stamp = os.path.join(self.root, "stamp")
        self.assertEqual(self.check("--stamp", stamp, "--depfile", stamp + ".d"), "")
        with open(stamp + ".d", encoding="utf-8") as file:
            needed = file.read().replace("\\\n", "").split(":")[1].split()
        time.sleep(0.01)
        self.write("probe/low/low.cpp", "")
        self.assertGreater(max(os.path.getmtime(path) for path in needed), os.path.getmtime(stamp))
        os.remove(stamp)
        self.write("probe/low/low.cpp", '#include "probe/high/high.h"\n')
        self.assertNotEqual(self.check("--stamp", stamp, "--depfile", stamp + ".d"), "")
        self.assertFalse(os.path.exists(stamp))


if __name__ == "__main__":
    unittest.main()
