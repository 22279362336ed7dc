"""A separate project: nanquest installed into a prefix, found by find_package, linked, built and run."""

import difflib
import json
import os
import pathlib
import re
import shutil
import subprocess

import common

BUILD = pathlib.Path(os.environ.get("NANQUEST_BUILD", common.ROOT / "build"))
CMAKE = os.environ.get("NANQUEST_CMAKE", "cmake")


class Stranger(common.ProgramTest):
    def run_ok(self, *command):
        # Every source here reads all of LibTorch's headers, so objects of earlier runs of this test are reused.
        environment = dict(os.environ, CCACHE_BASEDIR=str(self.scratch), CCACHE_NOHASHDIR="1")
        if shutil.which("ccache"):
            environment.setdefault("CMAKE_CXX_COMPILER_LAUNCHER", "ccache")
        process = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=600, env=environment)
        self.assertEqual(process.returncode, 0, f"{command}\n{process.stdout}\n{process.stderr}")
        return process

    def build_sample(self, *components, sample="stranger"):
        """Installs the components into a prefix and builds a sample with them; returns its build folder."""
        prefix, build = self.scratch / "prefix", self.scratch / "build"
        for component in components:
            self.run_ok(CMAKE, "--install", BUILD, "--prefix", prefix, "--component", component)
        # From a copy elsewhere, so that no file of this checkout is found by accident.
        source = shutil.copytree(common.ROOT / "samples" / sample, self.scratch / "source")
        self.run_ok(CMAKE, "-S", source, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                    f"-DCMAKE_PREFIX_PATH={prefix}")
        self.run_ok(CMAKE, "--build", build)
        return build

    def test_installed_package_serves_a_project_of_its_own(self):
        build, run = self.build_sample("probe"), self.scratch / "run"
        process = subprocess.run([str(build / "stranger"), str(run)], capture_output=True, text=True, timeout=120)
        self.assert_exit(process, common.FINDING)
        self.assertRegex(process.stdout, r"^final loss \d+(\.\d+)?, incidents 1$")
        final = float(process.stdout.split("final loss ")[1].split(",")[0])
        self.assertLess(final, 2.0, process.stdout)
        self.assertTrue(common.incident_of(run).stat().st_size > 0)
        self.assertFalse((build / "own_task").exists(), "the harness is not part of the probe")
        self.assertFalse((self.scratch / "prefix" / "include" / "nanquest" / "trainer").exists())

    def test_installed_harness_trains_a_task_of_its_own(self):
        if not (common.BIN / "nanquest-trainer").exists():
            self.skipTest("this build has no trainer")
        build, run = self.build_sample("probe", "train"), self.scratch / "run"
        process = subprocess.run([str(build / "own_task"), str(run)], capture_output=True, text=True, timeout=120)
        self.assert_exit(process, common.FINDING)
        start, end = map(float, re.findall(r"loss (\S+) at the start, (\S+) at the end, in fp32$", process.stdout)[0])
        self.assertLess(end, start / 10, process.stdout)
        self.assertIn("is not finite in fp16", process.stderr)
        self.assertTrue(common.incident_of(run).stat().st_size > 0)
        self.assertTrue((run / "checkpoints" / "final.safetensors").exists())
        self.assertFalse((self.scratch / "prefix" / "include" / "nanquest" / "trainer" / "cli").exists())

    def test_a_loop_of_its_own_gets_the_whole_fallback(self):
        if not (common.BIN / "nanquest-trainer").exists():
            self.skipTest("this build has no trainer")
        build = self.build_sample("probe", "train", sample="cpp_loop")
        before = subprocess.run([str(build / "before")], capture_output=True, text=True, timeout=120, cwd=self.scratch)
        self.assertRegex(before.stdout, r"^loss -?nan$")
        after = subprocess.run([str(build / "after")], capture_output=True, text=True, timeout=120, cwd=self.scratch)
        self.assert_exit(after, common.OK)
        loss = float(re.fullmatch(r"loss (\S+), 1 incidents, rate times 0\.5\n", after.stdout)[1])
        self.assertLess(loss, 0.5, "it learns on: the targets' variance is 4")
        self.assertIn("is not finite in fp16", after.stderr)
        self.assertIn("from here on: fp32, learning rate times 0.5", after.stderr)
        self.assertTrue(common.incident_of(self.scratch / "run").stat().st_size > 0)
        state = (self.scratch / "run" / "state.safetensors").read_bytes()
        header = json.loads(state[8:8 + int.from_bytes(state[:8], "little")])
        self.assertEqual(header["__metadata__"]["fell_back"], "1")
        self.assertIn("model.0.weight", header)

    def test_the_fallback_is_at_most_thirty_lines(self):
        folder = common.ROOT / "samples" / "cpp_loop"
        before, after = ((folder / name).read_text().splitlines() for name in ("before.cpp", "after.cpp"))
        added = [line for line in difflib.ndiff(before, after) if line.startswith("+ ") and not line.startswith("+ //")]
        self.assertLessEqual(len(added), 30)

    def test_programs_are_installed_and_start(self):
        prefix = self.scratch / "prefix"
        self.run_ok(CMAKE, "--install", BUILD, "--prefix", prefix)
        built = sorted(path.name for path in common.BIN.glob("nanquest-*"))
        self.assertTrue(built)
        for name in built:
            process = self.run_ok(prefix / "bin" / name, "--version")
            self.assertIn("nanquest", process.stdout)

    def test_loop_is_at_most_fifteen_lines(self):
        lines = (common.ROOT / "samples" / "stranger" / "main.cpp").read_text().splitlines()
        first = next(i for i, line in enumerate(lines) if "Probe::create" in line)
        last = next(i for i, line in enumerate(lines) if "finish(" in line)
        self.assertLessEqual(last - first + 1, 16)


if __name__ == "__main__":
    common.main()
