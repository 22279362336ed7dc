"""Ray Train: its workers are started by daemons that the program itself starts, and find the probe by their environment. Its packages are
looked for in `ray` of NANQUEST_OFFICIAL (`pip install --target`), else in `official/ray` of the set-up's cache; see official_case.py.
"""

import os
import pathlib
import shutil
import tempfile

from attached import PROGRAMS, main
from official_case import OFFICIAL, OfficialTest, needs

RAY = OFFICIAL / "ray"


@needs("ray/ray")
class RayTest(OfficialTest):
    kills = True

    def setUp(self):
        self.short = pathlib.Path(tempfile.mkdtemp(prefix="ray-"))  # its sockets lie there, and their paths may not be long
        self.addCleanup(shutil.rmtree, self.short, ignore_errors=True)
        super().setUp()

    def environment(self, **more):
        found = super().environment(**more)
        return {**found, "PYTHONPATH": os.pathsep.join([found["PYTHONPATH"], str(RAY)]), "RAY_USAGE_STATS_ENABLED": "0", "SEED": "0",
                "RAY_TMPDIR": str(self.short)}

    def test_published_example(self):
        """It has neither data nor settings: no alarm, and every loss as without the probe."""
        command = [RAY / "ray" / "train" / "examples" / "pytorch" / "torch_linear_example.py", "--epochs", "1"]
        alone, told = self.watched(command)
        self.assert_exit(alone)
        seen, again = self.watched(command, run_dir="run-healthy")
        self.assert_exit(seen)
        self.assertEqual((sorted(told), again), ([0, 1], told), alone.stderr)
        self.assert_quiet(seen, 2, 125)

    def test_bad_sample(self):
        self.check([PROGRAMS / "ray_worker.py", self.scratch / "storage"], ("0",), ("1",),
                   {"cause": "BAD_DATA", "phase": "input", "origin": "input"}, 2, output=None)


if __name__ == "__main__":
    main()
