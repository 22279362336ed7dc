"""nanquest-viewer without a window: pictures, text and tables of the demo's run; bad input."""

import csv
import io
import os
import pathlib
import shutil
import signal
import subprocess
import time
import unittest

import common
import demo_test

PANELS = ("verdict", "norms", "trace", "tensor", "runs")


class _Window:
    def __init__(self, incident):
        self.incident = incident

    def __enter__(self):
        words = ["xvfb-run", "-a", str(common.BIN / "nanquest-viewer"), str(self.incident), "--fresh", "--do", "Replay now"]
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        return self.incident, self.process

    def __exit__(self, *_):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
        self.process.wait(60)


class Viewer(common.ProgramTest):
    def test_help_and_version(self):
        self.assert_help("viewer")

    def test_every_panel_as_picture(self):
        for panel in PANELS:
            picture = self.scratch / f"{panel}.png"
            process = self.run_program("viewer", common.STORY, "--screenshot", picture, "--panel", panel)
            self.assert_exit(process, common.OK)
            width, height, colours = demo_test.look_at_png(picture)
            self.assertGreaterEqual(width * height, 640 * 360)
            self.assertGreater(colours, 10, panel)
        self.assert_nothing_half_written(self.scratch)

    def test_verdict_as_text(self):
        process = self.run_program("viewer", common.STORY, "--text", "verdict")
        self.assert_exit(process, common.OK)
        self.assertIn("FP16_OVERFLOW", process.stdout)
        self.assertIn("aten::", process.stdout)

    def test_norms_as_csv(self):
        process = self.run_program("viewer", common.STORY, "--csv", "norms")
        self.assert_exit(process, common.OK)
        rows = list(csv.reader(io.StringIO(process.stdout)))
        self.assertGreater(len(rows), 50)
        self.assertEqual({len(row) for row in rows}, {len(rows[0])})

    def test_a_snapshot_alone(self):
        process = self.run_program("viewer", common.incident_of(common.STORY), "--text", "verdict")
        self.assert_exit(process, common.OK)
        self.assertIn("FP16_OVERFLOW", process.stdout)

    def test_replay_now(self):
        """What the window's replay leaves is what the program leaves, and it ends with a window that is killed."""
        with self.window("first") as (incident, _):
            self.assertTrue(self.comes(incident.with_suffix(".replay.h5").exists), "nothing came of the replay")
        process = self.run_program("viewer", incident, "--text", "verdict")
        self.assertIn("FP16_OVERFLOW", process.stdout)
        rows = list(csv.DictReader(io.StringIO(self.run_program("viewer", incident, "--csv", "trace").stdout)))
        self.assertEqual([row["mark"] for row in rows if row["first_divergence"] == "1"], ["culprit"])
        self.assertTrue(any(float(row["fp64_amax"] or 0) > 65504 for row in rows))
        with self.window("second") as (incident, window):
            self.assertTrue(self.comes(lambda: self.processes("nanquest-replay", incident)), "it never ran")
            for viewer in self.processes("nanquest-viewer", incident):
                os.kill(viewer, signal.SIGKILL)
            self.assertTrue(self.comes(lambda: not self.processes("nanquest-replay", incident)), "it runs on")
            self.assertNotEqual(window.wait(60), 0)

    def window(self, name):
        """An incident that was not replayed, in a window that replays it."""
        if not shutil.which("xvfb-run"):
            raise unittest.SkipTest("no xvfb-run")
        source = common.incident_of(common.STORY)
        incident = self.scratch / name / source.name
        incident.parent.mkdir()
        shutil.copy(source, incident)
        return _Window(incident)

    @staticmethod
    def processes(program, incident):
        """Numbers of the processes that run this program on this file."""
        found = []
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
                state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if state != "Z" and pathlib.Path(os.fsdecode(words[0])).name == program and os.fsencode(incident) in words:
                found.append(int(folder.name))
        return found

    @staticmethod
    def comes(is_true, seconds=120):
        end = time.monotonic() + seconds
        while not is_true():
            if time.monotonic() > end:
                return False
            time.sleep(0.05)
        return True

    def test_bad_input(self):
        picture = self.scratch / "picture.png"
        damaged = self.scratch / "step-00000001.r0.h5"
        data = common.incident_of(common.STORY).read_bytes()
        damaged.write_bytes(data[:len(data) // 2])
        view = ("--screenshot", picture, "--panel")
        self.assert_refused(self.run_program("viewer", "nowhere", *view, "norms"), common.BAD_FILE, "nowhere")
        self.assert_refused(self.run_program("viewer", damaged, *view, "verdict"), common.BAD_FILE, damaged.name)
        self.assert_refused(self.run_program("viewer", common.STORY, *view, "nroms"), common.USAGE, "nroms")
        self.assertFalse(picture.exists())
        in_the_way = self.scratch / "a-file"
        in_the_way.write_text("no folder")
        picture = str(in_the_way / "all.png")
        process = self.run_program("viewer", common.STORY, "--screenshot", picture, "--panel", "norms")
        self.assert_refused(process, common.BAD_FILE, str(in_the_way))


if __name__ == "__main__":
    common.main()
