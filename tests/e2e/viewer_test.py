"""nanquest-viewer without a window: pictures, text and tables of the demo's run; bad input."""

import csv
import io

import common
import demo_test

PANELS = ("verdict", "norms", "trace", "tensor", "runs")


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
