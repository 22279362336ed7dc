"""The wheel with a folder for each minor version of PyTorch, as pip installs it: what is in it, which folder is taken, and what is said where none
fits. The libraries are those of this build, for this PyTorch; another minor is a file that is no library."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import torch
from install_test import PROGRAM, ROOT, environment_with_torch, run

sys.path.insert(0, str(ROOT / "cmake" / "wheel"))
import assemble  # noqa: E402

LIBRARY = pathlib.Path(os.environ["NANQUEST_ATTACH_LIBRARY"])
BUILD = LIBRARY.parent.parent
HERE = ".".join(torch.__version__.split(".")[:2])
OTHER = "2.7"  # older than any PyTorch that the tests run with
# A program whose torch says that it is another; what it prints shows that it ran.
PRETENDS = "import nanquest, sys, torch\ntorch.__version__ = sys.argv[1]\nprint(nanquest.attach(), 'libnanquest' in open('/proc/self/maps').read())\n"


def make_wheel(dist):
    project = assemble.tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    files = assemble.package_files()
    for name in ("libnanquest_attach.so", "libnanquest_attach.version", "libnanquest_replay.so"):
        files[f"nanquest/lib/torch-{HERE}/{name}"] = BUILD / "lib" / name
    files[f"nanquest/lib/torch-{HERE}/nanquest-replay"] = BUILD / "bin" / "nanquest-replay"
    files["nanquest/lib/libnanquest_preload.so"] = BUILD / "lib" / "libnanquest_preload.so"
    files[f"nanquest/lib/torch-{OTHER}/libnanquest_attach.so"] = b"no library"
    files[f"nanquest/lib/torch-{OTHER}/libnanquest_attach.version"] = f"{OTHER}.0\n".encode()
    return assemble.write(dist, project, files, "py3-none-linux_x86_64")


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = pathlib.Path(tempfile.mkdtemp(prefix="nanquest-wheel-"))
        cls.addClassCleanup(shutil.rmtree, cls.work, ignore_errors=True)
        wheel = make_wheel(cls.work / "dist")
        cls.bin = {}
        for name in ("bare", "with-torch"):
            place = cls.work / name
            if name == "bare":
                subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
            else:
                environment_with_torch(place)
            done = run(place / "bin/pip", "--disable-pip-version-check", "install", "--no-index", "--no-compile", wheel)
            assert done.returncode == 0, done.stderr
            cls.bin[name] = place / "bin"
        shutil.copy(PROGRAM, cls.work / "train.py")
        (cls.work / "pretends.py").write_text(PRETENDS)

    def start(self, where, *command, code=0, **environment):
        folder = self.bin[where]
        done = run(folder / command[0], *command[1:], cwd=self.work, env={"PATH": f"{folder}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1", **environment})
        self.assertEqual(done.returncode, code, f"{command}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
        return done

    def said_for(self, version):
        """What a program with this torch prints: its own line, and what the probe says."""
        done = self.start("with-torch", "python", "pretends.py", version)
        return done.stdout.strip(), done.stderr.strip().splitlines()

    def test_the_step_is_recorded_and_replayed_with_the_libraries_of_this_minor(self):
        self.assertEqual(self.start("with-torch", "nanquest", "--version").stdout.strip(), f"nanquest 0.1.0, for PyTorch {OTHER}, {HERE}")
        self.start("with-torch", "nanquest", "run", "--", "python", "train.py", "sgd", "4", "nan")
        file = "nanquest-run/incidents/step-00000004.r0.h5"
        for replay in (("nanquest-replay",), ("nanquest", "replay"), ("nanquest", "replay", "--import", "json")):
            self.assertTrue(json.loads(self.start("with-torch", *replay, "verify", file, "--json").stdout)["bit_exact"], replay)

    def test_a_patch_release_of_the_minor_is_accepted(self):
        self.assertEqual(self.said_for(f"{HERE}.99+cpu"), ("True False", []))  # loaded when the first step begins

    def test_others_are_refused_in_one_line_and_the_program_runs(self):
        for version, words in (("2.99.0", rf"serves PyTorch {OTHER}, {HERE}, but this program has 2\.99\.0; .*pip install --no-deps \."),
                               (f"{HERE}.0a0+145a3a7.nv26.1", rf"built for PyTorch {HERE}\.\d+, but this program has {HERE}\.0a0.*pip install --no-deps \.")):
            printed, said = self.said_for(version)
            self.assertEqual(printed, "False False")
            self.assertEqual(len(said), 1, said)
            self.assertRegex(said[0], words)

    def test_a_torch_that_was_compiled_otherwise_is_refused_before_anything_is_loaded(self):
        for change, words in (("torch.compiled_with_cxx11_abi = lambda: False", "with the C\\+\\+ ABI from before 2015"), ("torch.version.debug = True", "for debugging")):
            (self.work / "compiled.py").write_text(PRETENDS.replace("torch.__version__ = sys.argv[1]", change))
            done = self.start("with-torch", "python", "compiled.py")
            self.assertEqual(done.stdout, "False False\n")
            self.assertRegex(done.stderr, f"^nanquest: this PyTorch was compiled {words}[^\n]*\n$")

    def test_a_library_that_does_not_load_is_reported_with_the_way_out(self):
        (self.work / "old.py").write_text(f"import sys, torch\ntorch.__version__ = '{OTHER}.3'\nsys.argv = ['train.py', 'sgd', '9', '0']\n"
                                          "import nanquest\nnanquest.attach()\nexec(open('train.py').read())\nprint('trained')\n")
        done = self.start("with-torch", "python", "old.py")
        self.assertEqual(done.stdout, "trained\n")
        self.assertRegex(done.stderr, r"^nanquest: the probe can't be loaded: .*; the program runs without it \(.*pip install --no-deps \.")

    def test_without_torch_what_needs_it_says_so_in_one_line(self):
        for command, code in ((("nanquest-replay", "file.h5"), 127), (("nanquest", "replay", "file.h5"), 127)):
            said = self.start("bare", *command, code=code).stderr
            self.assertRegex(said, r"^nanquest: nanquest-replay needs PyTorch, and .* has none: pip install torch [^\n]*\n$")
        done = self.start("bare", "python", "-c", "import nanquest; print(nanquest.attach())")
        self.assertEqual(done.stdout, "False\n")
        self.assertRegex(done.stderr, r"^nanquest: nothing is observed: .* has no torch \(pip install torch\)\n$")
        self.assertIn("not installed in this Python", self.start("bare", "nanquest", "doctor", code=2).stdout)

    def test_hdf5_of_the_probe_and_of_h5py_live_in_one_process(self):
        for order in ("import h5py\nATTACH", "ATTACH\nimport h5py"):
            (self.work / "both.py").write_text(
                "import sys\nsys.argv = ['train.py', 'sgd', '4', 'nan']\nimport nanquest\n"
                + order.replace("ATTACH", "nanquest.attach(run_dir='train.py.run')") +
                "\nexec(open('train.py').read())\nimport glob\nprint('complete' in h5py.File(glob.glob('train.py.run/incidents/step-*.h5')[0]).attrs)\n")
            shutil.rmtree(self.work / "train.py.run", ignore_errors=True)
            self.assertEqual(self.start("with-torch", "python", "both.py").stdout, "True\n")

    def test_libraries_export_their_c_functions_alone(self):
        for name in ("attach", "replay"):
            listed = subprocess.run(["nm", "-D", "--defined-only", BUILD / "lib" / f"libnanquest_{name}.so"], text=True, capture_output=True, check=True)
            names = [line.split()[-1] for line in listed.stdout.splitlines()]
            self.assertEqual([each for each in names if not re.match("nanquest_", each) and each != "nanquest_replay"], [], name)
            self.assertTrue(names)


if __name__ == "__main__":
    unittest.main(verbosity=2)
