"""A stranger's project: nanquest installed into a prefix, found by find_package, linked, built and run."""

import os
import pathlib
import shutil
import subprocess

import common

BUILD = pathlib.Path(os.environ.get("NANQUEST_BUILD", common.ROOT / "build"))
CMAKE = os.environ.get("NANQUEST_CMAKE", "cmake")


class Stranger(common.ProgramTest):
    def run_ok(self, *command):
        process = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=600)
        self.assertEqual(process.returncode, 0, f"{command}\n{process.stdout}\n{process.stderr}")
        return process

    def test_installed_package_serves_a_project_of_its_own(self):
        prefix, build, run = self.scratch / "prefix", self.scratch / "build", self.scratch / "run"
        self.run_ok(CMAKE, "--install", BUILD, "--prefix", prefix, "--component", "probe")
        # From a copy elsewhere, so that nothing of this checkout is found by accident.
        source = shutil.copytree(common.ROOT / "samples" / "stranger", self.scratch / "source")
        self.run_ok(CMAKE, "-S", source, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                    f"-DCMAKE_PREFIX_PATH={prefix}")
        self.run_ok(CMAKE, "--build", build)
        process = subprocess.run([str(build / "stranger"), str(run)], capture_output=True, text=True, timeout=120)
        self.assert_exit(process, common.FINDING)
        self.assertRegex(process.stdout, r"^final loss \d+(\.\d+)?, incidents 1$")
        final = float(process.stdout.split("final loss ")[1].split(",")[0])
        self.assertLess(final, 2.0, process.stdout)
        self.assertTrue(common.incident_of(run).stat().st_size > 0)

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
