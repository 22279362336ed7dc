#!/usr/bin/env python3
"""What `nanquest run --audit N` costs: of the training, for each audited step, and of the process beside it.

usage: audit_bench.py [WIDTH]   (default: 128)

A GPT of four blocks trains 100 steps on one thread, every 20th of them audited. Processor time of the audited steps (watching and writing
the file) is compared with the median of the others. "beside" is the processor time of one nanquest-replay audit of the same step.
"""

import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = os.environ.get("NANQUEST_BIN", str(ROOT / "build" / "bin"))
STEPS, EVERY = 100, 20

PROGRAM = """
import json, sys, time
import torch
from torch import nn
from torch.nn import functional as F
width, steps = int(sys.argv[1]), int(sys.argv[2])
torch.set_num_threads(1)
torch.manual_seed(3)
embed, head = nn.Embedding(256, width), nn.Linear(width, 256)
blocks = nn.TransformerEncoder(nn.TransformerEncoderLayer(width, 4, 4 * width, 0.0, batch_first=True, norm_first=True), 4, enable_nested_tensor=False)
model = nn.Sequential(embed, blocks, head)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
took = []
for step in range(steps):
    tokens = torch.randint(0, 256, (8, 129))
    start = time.process_time()
    loss = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    took.append(time.process_time() - start)
json.dump(took, open("took.json", "w"))
"""


def main():
    width = sys.argv[1] if len(sys.argv) > 1 else "128"
    with tempfile.TemporaryDirectory(prefix="nanquest-bench-") as scratch:
        program = pathlib.Path(scratch, "program.py")
        program.write_text(PROGRAM)
        words = ["--watch-every", "0", "--audit", str(EVERY), "--record-steps", str(EVERY)]
        subprocess.run(
            [sys.executable, "-m", "nanquest", "run", *words, "--", sys.executable, str(program), width, str(STEPS)],
            cwd=scratch,
            check=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        took = json.loads(pathlib.Path(scratch, "took.json").read_text())
        file = pathlib.Path(scratch, "nanquest-run", "recordings", f"step-{EVERY:08}.r0.h5")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([os.path.join(BIN, "nanquest-replay"), "audit", str(file)], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        beside = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        others = statistics.median(seconds for step, seconds in enumerate(took) if step >= 10 and step % EVERY)
        audited = [took[step] for step in range(EVERY, STEPS, EVERY)]
        print(
            f"audit_bench: width {width}: a step {1e3 * others:.1f} ms of processor time; audited ones {1e3 * statistics.median(audited):.1f} ms "
            f"({1e3 * min(audited):.1f} to {1e3 * max(audited):.1f}); beside {1e3 * beside:.0f} ms; file {file.stat().st_size / 1e6:.1f} MB"
        )


if __name__ == "__main__":
    main()
