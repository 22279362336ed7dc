"""nanquest-replay --patch: the fix that was tried, as a patch of the program. Applied to a copy, the program stays finite."""

import os
import shutil
import subprocess
import sys
import textwrap

import attached

LOOP = """\
import torch

torch.manual_seed(0)
net = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(9):
    x = torch.randn(8, 4)
{body}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("finite" if all(p.isfinite().all() for p in net.parameters()) and loss.isfinite() else "not finite")
"""

PROGRAMS = {
    "root of a distance, as a method": """\
        other = x if step == 5 else torch.randn(8, 4)
        distance = (net(x) - net(other)).square().sum(1).sqrt()  # sqrt(d)
        loss = (distance - 1).square().mean()
        """,
    "root as a function": """\
        other = x if step == 5 else torch.randn(8, 4)
        squares = (net(x) - net(other)).square()
        loss = torch.sqrt(squares.sum(1)).mean()
        """,
    "logarithm": """\
        p = (net(x) * (1000 if step == 5 else 1)).softmax(1)
        loss = -torch.log(p).mean()
        """,
    "division by a count": """\
        mask = (x[:, 0] > (9 if step == 5 else 0)).float()
        loss = (net(x).square().mean(1) * mask).sum() / mask.sum()
        """,
}


def program_of(body):
    return LOOP.format(body=textwrap.indent(textwrap.dedent(body), "    ").rstrip())


class Patch(attached.AttachTest):
    def patched(self, body, *more):
        """The program ran into its incident; replay was asked for a patch."""
        program = self.scratch / "program.py"
        program.write_text(program_of(body))
        self.clear("run")
        self.assert_exit(self.plain(program))
        self.observed(program)
        snapshot = self.incidents()[0]
        process = subprocess.run([str(attached.BIN / "nanquest-replay"), str(snapshot), "--full", "--patch", "fix.patch", *more],
                                 cwd=self.scratch, text=True, capture_output=True, timeout=300)
        return program, snapshot, process

    def test_patched_programs_stay_finite(self):
        for name, body in PROGRAMS.items():
            with self.subTest(name):
                (self.scratch / "fix.patch").unlink(missing_ok=True)
                program, snapshot, process = self.patched(body)
                text = program.read_text()
                patch = self.scratch / "fix.patch"
                self.assertTrue(patch.exists(), process.stdout + process.stderr)
                self.assertIn(patch.read_text(), process.stdout)
                self.assertEqual(program.read_text(), text, "the program itself was changed")
                self.assertIn("not finite", self.plain(program).stdout)
                copy = self.scratch / "copy"
                shutil.rmtree(copy, ignore_errors=True)
                copy.mkdir()
                shutil.copy(program, copy)
                applied = subprocess.run(["git", "apply", "-p0", str(patch)], cwd=copy, text=True, capture_output=True,
                                         env=dict(os.environ, GIT_CEILING_DIRECTORIES=str(self.scratch)))
                self.assert_exit(applied)
                self.assertEqual(self.plain(copy / "program.py").stdout.strip(), "finite", patch.read_text())

    def test_no_patch_with_a_reason(self):
        body = PROGRAMS["root as a function"]
        program, snapshot, process = self.patched(body)
        program.write_text("# a line more\n" + program.read_text())
        os.utime(program)
        again = [str(attached.BIN / "nanquest-replay"), str(snapshot), "--no-files", "--full", "--patch", "second.patch"]
        said = subprocess.run(again, cwd=self.scratch, text=True, capture_output=True, timeout=300)
        self.assertIn("was changed after the incident", said.stderr)
        self.assertIn("was changed after the incident", said.stdout)
        program.unlink()
        said = subprocess.run(again, cwd=self.scratch, text=True, capture_output=True, timeout=300)
        self.assertIn("is not on this machine", said.stderr)
        self.assertFalse((self.scratch / "second.patch").exists())

    def test_two_calls_on_one_line_have_none(self):
        """Which of the two it was is not on record, so neither is changed."""
        program, snapshot, process = self.patched("""\
            other = x if step == 5 else torch.randn(8, 4)
            loss = torch.sqrt((net(x) - net(other)).square().sum(1)).mean() + torch.sqrt(x.square().sum())
            """)
        self.assertIn("no patch: ", process.stderr)
        self.assertIn("does not show sqrt as one call", process.stderr)
        self.assertFalse((self.scratch / "fix.patch").exists())


if __name__ == "__main__":
    attached.main()
