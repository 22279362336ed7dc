"""The whole story by samples/demo.sh: trained, overflowed, survived, reproduced, explained, drawn."""

import json
import math
import shutil
import struct
import subprocess
import zlib

import common


class Demo(common.ProgramTest):
    @classmethod
    def setUpClass(cls):
        shutil.rmtree(common.STORY.parent, ignore_errors=True)
        common.STORY.parent.mkdir(parents=True)
        cls.process = subprocess.run(
            [str(common.ROOT / "samples" / "demo.sh"), "--bin", str(common.BIN), "--run-dir", str(common.STORY),
             "--no-window"], cwd=common.ROOT, capture_output=True, text=True, timeout=1500)

    def verdict(self):
        path = common.incident_of(common.STORY).with_suffix(".json")
        return json.loads(path.read_text())

    def test_1_the_story_happened(self):
        self.assertEqual(self.process.returncode, 0, self.process.stdout + self.process.stderr)
        self.assert_nothing_half_written(common.STORY)

    def test_2_the_step_came_back_bit_for_bit(self):
        reproduction = self.verdict()["reproduction"]
        self.assertIs(reproduction["bit_exact"], True, reproduction)
        self.assertEqual(reproduction["mismatched"], 0)
        self.assertGreater(reproduction["outputs_compared"], 100)

    def test_3_the_verdict_names_op_module_and_cause(self):
        verdict = self.verdict()
        self.assertEqual(verdict["format"], "nanquest.verdict")
        self.assertEqual(verdict["cause"], "FP16_OVERFLOW")
        self.assertTrue(verdict["culprit"]["op"].startswith("aten::"), verdict["culprit"])
        self.assertTrue(verdict["culprit"]["module"], verdict["culprit"])
        self.assertIn(verdict["phase"], ("forward", "backward"))
        self.assertGreater(verdict["confidence"], 0.5)
        self.assertTrue(verdict["explanation"])

    def test_4_the_step_is_finite_in_fp32_and_the_fix_was_tried(self):
        verdict = self.verdict()
        self.assertEqual(verdict["precision"]["fp32"], "finite")
        self.assertEqual(verdict["precision"]["fp64"], "finite")
        self.assertIn(verdict["precision"]["verdict"], ("curable", "delayed"))
        kinds = {c["kind"]: c["result"] for c in verdict["counterfactuals"]}
        self.assertEqual(kinds.get("placebo"), "non_finite", "the placebo must not fix the step")
        self.assertIs(verdict["fix"]["verified"], True, verdict["fix"])

    def test_5_training_ended_lower_and_finite(self):
        """Judged by the series that the run wrote, not by its output."""
        import h5py  # installed in the tests' environment
        with h5py.File(next(common.STORY.glob("series.r*.h5")), "r") as file:
            rows = file["history/scalars/values"][()]
        steps, losses = rows[:, 0], rows[:, 1]  # order of columns as in probe/step/history.h
        self.assertGreater(len(steps), 50)
        self.assertTrue((steps[1:] >= steps[:-1]).all())
        good = losses[[math.isfinite(value) for value in losses]]
        self.assertLess(len(good), len(losses), "the bad step must be on record")
        first, last = good[:5].mean(), good[-20:].mean()
        self.assertLess(last, first - 0.5, f"loss went from {first} to {last}")

    def test_6_pictures_show_something(self):
        for name in ("verdict.png", "norms.png"):
            width, height, colours = look_at_png(common.STORY.with_name(common.STORY.name + "-pictures") / name)
            self.assertGreaterEqual(width, 640)
            self.assertGreaterEqual(height, 360)
            self.assertGreater(colours, 30, f"{name} holds {colours} colours only")

    def test_7_it_prints_where_things_are(self):
        incident = str(common.incident_of(common.STORY))
        self.assertIn(incident, self.process.stdout)
        self.assertIn("nanquest-viewer", self.process.stdout)
        self.assertIn("FP16_OVERFLOW", self.process.stdout)


def look_at_png(path):
    """Width, height and number of different pixel values (at most 1000) of an 8-bit RGB or RGBA PNG."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n", f"{path} is not a PNG"
    width, height, depth, kind = struct.unpack(">IIBB", data[16:26])
    assert depth == 8 and kind in (2, 6), f"{path}: depth {depth}, colour type {kind}"
    offset, packed = 8, b""
    while offset < len(data):
        length, name = struct.unpack(">I4s", data[offset:offset + 8])
        if name == b"IDAT":
            packed += data[offset + 8:offset + 8 + length]
        offset += 12 + length
    raw, size = zlib.decompress(packed), 3 if kind == 2 else 4
    stride = width * size
    assert len(raw) == height * (stride + 1), f"{path} is cut short"
    colours, previous = set(), bytearray(stride)
    for row in range(height):
        line = unfilter(raw[row * (stride + 1)], raw[row * (stride + 1) + 1:(row + 1) * (stride + 1)], previous, size)
        colours.update(bytes(line[i:i + size]) for i in range(0, stride, size))
        previous = line
        if len(colours) > 1000:
            break
    return width, height, len(colours)


def unfilter(kind, line, above, size):
    """One PNG row without its filter (PNG specification, section 9)."""
    line = bytearray(line)
    for i in range(len(line)):
        left = line[i - size] if i >= size else 0
        up, corner = above[i], above[i - size] if i >= size else 0
        if kind == 1:
            line[i] = (line[i] + left) & 255
        elif kind == 2:
            line[i] = (line[i] + up) & 255
        elif kind == 3:
            line[i] = (line[i] + (left + up) // 2) & 255
        elif kind == 4:
            guess = left + up - corner
            near = min((abs(guess - left), 0, left), (abs(guess - up), 1, up), (abs(guess - corner), 2, corner))
            line[i] = (line[i] + near[2]) & 255
    return line


if __name__ == "__main__":
    common.main()
