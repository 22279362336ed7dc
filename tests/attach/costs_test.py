"""What the series says of a run's cost: how long its steps took, what memory the process has, what the probe itself takes."""

import math

from attached import AttachTest, main

# Each step passes `SECONDS` in its forward pass, outside of everything that the probe sees; at the end it says what memory it has.
PROGRAM = """
import os, sys, time, torch
seconds, more = float(sys.argv[1]), int(sys.argv[2])
torch.manual_seed(0)
model = torch.nn.Sequential(*(torch.nn.Linear(16, 16) for _ in range(8)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
kept = torch.ones(more, dtype=torch.uint8)
for step in range(60):
    optimizer.zero_grad()
    loss = model(torch.randn(4, 16)).square().mean()
    time.sleep(seconds)
    loss.backward()
    optimizer.step()
with open("/proc/self/status") as file:
    print(1024 * int(next(line for line in file if line.startswith("VmRSS")).split()[1]))
"""


class CostsTest(AttachTest):
    def rows(self, level, seconds, more=0):
        """The columns of the series, and what memory the program said it had."""
        import h5py

        script = self.scratch / "sleeps.py"
        script.write_text(PROGRAM)
        run_dir = f"{level}-{seconds}-{more}"
        process = self.observed(script, seconds, more, run_dir=run_dir, options=("--level", level))
        self.assert_exit(process)
        with h5py.File(self.scratch / run_dir / "series.r0.h5") as series:
            text, ends = series["strings/bytes"][:].tobytes(), series["strings/offsets"][:]
            names = [text[ends[n] : ends[n + 1]].decode() for n in series["history/scalars/columns"][:]]
            values = series["history/scalars/values"][:]
        return {name: list(values[:, i]) for i, name in enumerate(names)}, int(process.stdout.split()[-1])

    def test_seconds_and_the_share_of_the_probe(self):
        for level in ("guard", "trace"):
            with self.subTest(level):
                idle, _ = self.rows(level, 0.02)
                busy, _ = self.rows(level, 0)
                self.assertTrue(all(each >= 0.02 for each in idle["seconds"]), idle["seconds"])
                for columns in (idle, busy):
                    share = columns["probe_share"]
                    self.assertTrue(all(math.isnan(each) for each in share[:5]), "measured before the fifth step")
                    self.assertTrue(0 < share[-1] < 1, share)
                self.assertLess(idle["probe_share"][-1], busy["probe_share"][-1])

    def test_memory_is_what_the_system_says(self):
        columns, said = self.rows("guard", 0.01, more=300_000_000)
        self.assertTrue(all(each > 300e6 for each in columns["resident"]), columns["resident"])
        self.assertLess(abs(columns["resident"][-1] - said), 50e6)
        self.assertTrue(all(math.isnan(each) for each in columns["device_peak"]), "there is no device")


if __name__ == "__main__":
    main()
