"""Planted faults in programs that know nothing of the probe, and what becomes of each under --on-incident fallback_fp32.

usage: try_faults.py [--few | --all] [--table] [--rows]      (--few: eight of them; --all: every optimizer with every fault;
--table, --rows: also what became of each kind of fault, of each fault, in Markdown)

Every case runs twice, alone and attached. What is right is known by how the fault was made:
recovered: one incident, weights finite, every later update made, and the loss on held-out data below half of what it was when
           the fault came;
skipped:   finite, and learned on, with some batches left out after the fallback;
stopped:   ended with exit code 4 as soon as it was due, with finite weights unless the fault wrote to them itself.
Clean runs, and faults that a loss scaler sees to, end with the same bits as without the probe.
"""
import argparse
import collections
import os
import pathlib
import sys
import tempfile

import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[2] / "probe" / "attach" / "python")]
import nanquest  # noqa: E402
from nanquest.base.probe_state import probe  # noqa: E402
import program  # noqa: E402

FORMATS = ("fp32", "bf16", "fp16", "pure-bf16", "pure-fp16")
ADAPTIVE = ("adamw", "adamw-fused", "rmsprop", "adafactor")
MORE = ("nadam", "adamax", "asgd", "rprop", "adagrad", "radam")
EVER, THRICE, STEPS = -1, 3, 100
OFTEN = {1: "once", THRICE: "three times", EVER: "for ever"}
# Faults that do no harm: these learning rates limit a step of another size, and these moments never reach a weight as numbers.
HARMLESS = {("rate", "adafactor"), ("rate", "rprop"), ("moment", "asgd"), ("moment", "rprop")}
SPOILS = ("weight", "moment", "rate")  # damage that skipping an update does not repair
HALVINGS = 10  # of the loss scale, until it is 1
KINDS = {"input": "NaN in a batch", "inf": "Inf in a batch", "target": "NaN in a target", "loss": "NaN loss",
         "root": "finite loss, NaN gradient", "gradient": "Inf in a gradient", "overflow": "loss overflows fp16, once or for ever",
         "weight": "NaN written to a weight", "moment": "NaN written to a moment", "rate": "infinite rate", "clean": "nothing"}


def scalers(run):
    """Whether it looks like an overflow of the loss scale: then it is its scaler's business, until the scale is at its end."""
    return run.format == "fp16" and run.where in ("inf", "root", "gradient")


def optimizers(format, every):
    # The squares of gradients don't fit into fp16: that program is lost without any fault.
    return ("sgd",) if format == "pure-fp16" else ("sgd", *ADAPTIVE, *(MORE if every else ()))


def cases(every):
    """(Run, what is right). `every`: each fault with each optimizer, not with one of them in turn."""
    for format in FORMATS:
        names = optimizers(format, every)
        for number, where in enumerate(("input", "inf", "target", "loss", "root", "gradient")):
            for count, right in ((1, "recovered"), (THRICE, "skipped"), (EVER, "stopped")):
                for name in names if every else (names[(number + count) % len(names)],):
                    run = program.Run(format, name, where, count=count, steps=STEPS)
                    yield run, "clean" if scalers(run) and count > 0 else right
        for where in SPOILS:
            for name in names if every else names[:1]:
                if (where, name) not in HARMLESS:
                    yield program.Run(format, name, where, steps=STEPS), "stopped"
        for name in names:
            yield program.Run(format, name, at=99), "clean"
    for format in ("fp16", "pure-fp16"):  # what the fallback is for
        for count in (1, EVER):
            yield program.Run(format, "sgd", "overflow", count=count, steps=STEPS), "recovered"


def attached(run):
    """(what it leaves, exit code, incidents, batches skipped, whether it fell back) with the probe."""
    found, code = {}, 0
    with tempfile.TemporaryDirectory(prefix="nanquest-fault-") as folder:
        assert nanquest.attach(run_dir=os.path.join(folder, "run"), level="guard", on_incident="fallback_fp32")
        it = probe.current
        try:
            program.train(run, found=found)
        except SystemExit as end:
            code = end.code
        off = it.off and not code
        nanquest.detach()
    return found, code, it.skipped, it.fell_back, off


def same(a, b):
    return all(x.equal(y) for x, y in zip(a["model"].state_dict().values(), b["model"].state_dict().values()))


def judged(run):
    """(what became of it, what became of it without the probe)."""
    plain = program.train(run)
    found, code, skipped, fell_back, off = attached(run)
    alone = "finite" if program.finite(plain) else "lost"
    if off:
        return "the probe is off", alone
    if run.at > run.steps or (scalers(run) and run.count > 0):
        untouched = same(plain, found) and not skipped and fell_back is None and not code
        return ("clean" if untouched else "touched"), alone
    if code:
        spoils = run.where in SPOILS
        # The step after the fault shows what was spoiled; or the fallback, and five batches more.
        late = run.where == "rate" and run.optimizer == "asgd"  # it takes a rate from the update before
        due = 2 + late if spoils else 1 + 5 + (HALVINGS if scalers(run) else 0)
        in_time = len(found["losses"]) == run.at + due
        return ("stopped" if code == 4 and in_time and (spoils or program.finite(found)) else f"ended with {code}"), alone
    if not program.finite(found):
        return "lost", alone
    learned = found["held_out"] < found["held_out_before"] / 2
    halved = all(found["rates"][step] == rate / 2 for step, rate in plain["rates"].items()
                 if step > run.at and step in found["rates"] and fell_back == run.at)
    if not learned or not halved:
        return "did not learn on" if halved else "other rates", alone
    return ("skipped" if skipped else "recovered") if fell_back == run.at else "without a fallback", alone


def table(rows):
    counts = collections.Counter((run.where if right != "clean" else "clean", right) for run, right, _, _ in rows)
    good = collections.Counter((run.where if right != "clean" else "clean", right) for run, right, got, _ in rows if got == right)
    columns = ("recovered", "skipped", "stopped", "clean")
    print("| planted | once: recovered | three times: recovered, then skipped | for ever: stopped in time | left alone |")
    print("|---|---|---|---|---|")
    for where, words in KINDS.items():
        cells = [f"{good[where, c]} of {counts[where, c]}" if counts[where, c] else "" for c in columns]
        print(f"| {words} | " + " | ".join(cells) + " |")


def each(rows):
    print("| planted | format | optimizer | how often | became | without the probe |")
    print("|---|---|---|---|---|---|")
    for run, _, got, alone in rows:
        often = OFTEN[run.count] if run.at < run.steps else ""
        print(f"| {KINDS[run.where] if often else KINDS['clean']} | {run.format} | {run.optimizer} | {often} | {got} | {alone} |")


def main():
    parser = argparse.ArgumentParser()
    for name in ("few", "all", "table", "rows"):
        parser.add_argument(f"--{name}", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows, wanted = [], [*cases(options.all)]
    for run, right in wanted[4::len(wanted) // 8] if options.few else wanted:
        got, alone = judged(run)
        rows.append((run, right, got, alone))
        if got != right:
            print(f"{run.format} {run.optimizer} {run.where} x{run.count}: {got}, but should be {right}", flush=True)
    faults = [row for row in rows if row[1] != "clean"]
    right = sum(got == wanted for _, wanted, got, _ in rows)
    if options.table:
        table(rows)
    if options.rows:
        each(rows)
    print(f"{right} of {len(rows)} right: {len(faults)} planted faults, {len(rows) - len(faults)} clean runs; "
          f"{sum(alone == 'lost' for *_, alone in faults)} of the faults lose the run without the probe")
    return 0 if right == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
