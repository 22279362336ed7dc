"""`pip install .` into a fresh environment: everything is there and works from another folder, and goes again without a trace."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
CMAKE = os.environ.get("NANQUEST_CMAKE", "cmake")
THIS_PYTHON = ROOT / "probe" / "attach" / "python" / "this_python.cmake"
PROGRAM = ROOT / "tests" / "attach" / "programs" / "mlp.py"


def run(*command, **options):
    """A finished process, without settings of this test's own."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("NANQUEST_", "PYTHON"))}
    return subprocess.run([str(c) for c in command], text=True, capture_output=True, timeout=3000,
                          env={**environment, **options.pop("env", {})}, **options)


def environment_with_torch(folder):
    """A new environment that shares this Python's torch and what it needs: a copy would be 6 GB."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    packages = pathlib.Path(sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)}))
    import torch
    (packages / "torch.pth").write_text(str(pathlib.Path(torch.__file__).parents[1]) + "\n")
    return packages


class Scratch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = pathlib.Path(tempfile.mkdtemp(prefix="nanquest-install-"))
        cls.addClassCleanup(shutil.rmtree, cls.scratch, ignore_errors=True)

    def run_ok(self, *command, code=0, **options):
        process = run(*command, **options)
        self.assertEqual(process.returncode, code, f"{command}\n{process.stdout[-6000:]}\n{process.stderr[-3000:]}")
        return process


class WhatIsMissing(Scratch):
    """Short: what a build says that can't be."""

    def test_torch_of_the_environment_is_found_behind_pips_curtain(self):
        # pip puts a folder on PYTHONPATH whose sitecustomize takes the environment's own packages off the path.
        curtain = self.scratch / "curtain"
        curtain.mkdir()
        (curtain / "sitecustomize.py").write_text(
            "import sys\nsys.path[:] = [p for p in sys.path if 'site-packages' not in p]\n")
        hidden = run(sys.executable, "-c", "import torch", env={"PYTHONPATH": str(curtain)})
        self.assertNotEqual(hidden.returncode, 0)
        process = self.run_ok(CMAKE, f"-DPython_EXECUTABLE={sys.executable}", "-P", THIS_PYTHON,
                              env={"PYTHONPATH": str(curtain)})
        import torch
        self.assertIn(f"nanquest is built for the torch in {pathlib.Path(torch.__file__).parent}", process.stdout)

    def test_no_torch(self):
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(self.scratch / "bare")], check=True)
        process = run(CMAKE, f"-DPython_EXECUTABLE={self.scratch}/bare/bin/python", "-P", THIS_PYTHON)
        self.assertNotEqual(process.returncode, 0)
        self.assertRegex(re.sub(r"\s+", " ", process.stderr), "has no torch.* install torch there first, then nanquest")

    def test_no_hdf5(self):
        process = run(CMAKE, "-S", ROOT, "-B", self.scratch / "build", "-G", "Ninja", "-DCMAKE_DISABLE_FIND_PACKAGE_HDF5=ON",
                      "-DNANQUEST_TORCH=OFF", "-DNANQUEST_PYTHON=OFF", "-DNANQUEST_CUDA=OFF", "-DNANQUEST_TESTS=OFF")
        self.assertNotEqual(process.returncode, 0)
        self.assertIn("apt-get install libhdf5-dev (", re.sub(r"\s+", " ", process.stderr))


@unittest.skipUnless(os.environ.get("NANQUEST_NIGHTLY") == "1", "at night only (NANQUEST_NIGHTLY=1): it builds everything")
class Installed(Scratch):
    """One installation serves all tests; the last takes it away again."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.venv = cls.scratch / "venv"
        cls.packages = environment_with_torch(cls.venv)
        cls.bin = cls.venv / "bin"
        cls.before = cls.files()
        # The names under which the ordinary build calls the compilers: ccache keeps what it made by name.
        process = run(cls.bin / "pip", "--disable-pip-version-check", "install", "-v", "--no-deps", ROOT,
                      env={"CC": "cc", "CXX": "c++", "CMAKE_BUILD_PARALLEL_LEVEL": str(os.cpu_count())})
        assert process.returncode == 0, process.stdout[-6000:] + process.stderr[-3000:]
        cls.work = cls.scratch / "work"
        cls.work.mkdir()
        shutil.copy(PROGRAM, cls.work / "train.py")

    @classmethod
    def files(cls):
        return {str(p.relative_to(cls.venv)) for p in cls.venv.rglob("*") if "__pycache__" not in p.parts}

    def in_environment(self, *command, code=0, **more):
        return self.run_ok(*command, code=code, cwd=self.work, env={
            "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}", "VIRTUAL_ENV": str(self.venv), "OMP_NUM_THREADS": "1", **more})

    def test_1_a_program_is_observed_and_its_step_replayed(self):
        run_ = self.in_environment("nanquest", "run", "--", "python", "train.py", "sgd", "4", "nan")
        file = "nanquest-run/incidents/step-00000004.r0.h5"
        self.assertIn(f"nanquest-replay {file}", run_.stderr)
        verdict = json.loads(self.in_environment("nanquest-replay", file, "--json", code=1).stdout)
        self.assertTrue(verdict["reproduction"]["bit_exact"], verdict)
        self.assertEqual(verdict["cause"], "BAD_DATA")
        inside = self.in_environment("nanquest", "replay", "--import", "json", "verify", file, "--json").stdout
        self.assertTrue(json.loads(inside)["bit_exact"], inside)
        self.assertIn("HDF5", self.in_environment("nanquest-replay", "--version").stdout)
        # These take most of the build time, and are only built on request.
        for program in ("nanquest-trainer", "nanquest-viewer"):
            self.assertIn(f"-C cmake.define.NANQUEST_{program[9:].upper()}=ON", self.in_environment(program, code=127).stderr)

    def assert_built_for_this_torch(self):
        import torch
        release, minor = re.match(r"(\d+\.\d+)\.\d+", torch.__version__).group(0, 1)
        library = self.packages / f"nanquest/lib/torch-{minor}/libnanquest_attach.so"
        self.assertEqual(library.with_suffix(".version").read_text().strip(), release)
        self.assertIn(f"for PyTorch {minor}", self.in_environment("nanquest", "--version").stdout)
        self.assertTrue((self.packages / "nanquest/lib/libnanquest_preload.so").exists())  # needs the C library alone
        for file in (library, *(library.with_name(name) for name in ("libnanquest_replay.so", "nanquest-replay"))):
            linked = self.run_ok("ldd", file).stdout
            self.assertNotIn("not found", linked)
            self.assertIn(str(pathlib.Path(torch.__file__).resolve().parent / "lib" / "libtorch_cpu.so"), linked)

    def test_2_libraries_are_found_in_the_environment(self):
        self.assert_built_for_this_torch()

    def test_3_another_torch_is_refused_before_anything_is_loaded(self):
        # A torch that says it is another: the program sees it, and so does the probe.
        script = self.work / "later.py"
        script.write_text("import nanquest, torch\ntorch.__version__ = '2.99.0'\nattached = nanquest.attach()\n"
                          "maps = open('/proc/self/maps').read()\nprint(attached, 'libnanquest' in maps, 'libhdf5' in maps)\n")
        process = self.in_environment("python", "later.py")
        self.assertEqual(process.stdout, "False False False\n")
        self.assertEqual(len(process.stderr.splitlines()), 1, process.stderr)
        self.assertRegex(process.stderr, r"serves PyTorch \d+\.\d+, but this program has 2\.99\.0; the program runs without")

    def test_4_without_build_isolation(self):
        self.in_environment("pip", "--disable-pip-version-check", "install", "scikit-build-core>=0.10", "ninja")
        # What the first installation left must not pass for the second's.
        shutil.rmtree(self.packages / "nanquest" / "lib")
        self.in_environment("pip", "--disable-pip-version-check", "install", "--no-build-isolation",
                            "--force-reinstall", "--no-deps", str(ROOT), CC="cc", CXX="c++")
        self.assert_built_for_this_torch()
        self.in_environment("nanquest", "run", "--run-dir", "again", "--", "python", "train.py", "sgd", "4", "nan")
        self.in_environment("nanquest-replay", "verify", "again/incidents/step-00000004.r0.h5")

    def test_5_nothing_stays(self):
        tools = [line.split("==")[0] for line in self.in_environment("pip", "list", "--format=freeze", "--path",
                                                                     self.packages).stdout.split()]
        self.in_environment("pip", "uninstall", "--yes", *(set(tools) - {"pip", "setuptools", "wheel"}))
        self.assertEqual(self.files() - self.before, set())


if __name__ == "__main__":
    unittest.main(verbosity=2)
