"""Whether a rewind names the root, on made runs whose root is known by construction (made.py): five architectures, seven causes.

usage: try_roots.py [--unseen | --few] [--jobs N] [--rows] [--table]

Runs that do not go bad count as nothing. "right": the root is that of the construction; "unknown": none is claimed, or UNKNOWN;
"wrong": anything else. That a rate is to blame is checked with the program itself: at a tenth of it the same run stays finite.
Without --unseen the seeds are 1 to 3, which were looked at while this was built; with it 101 to 104. Goals: right 85 %, wrong
3 % at most. --few: two of them, for the ordinary tests; both must be right.
"""

import argparse
import concurrent.futures
import json
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from attached import AttachTest  # noqa: E402

STEPS, TAPE = 120, 32
ARCHITECTURES = ("residual", "recurrent", "decoder", "convolutional", "perceptron")
ROOTS = {"rate": "DIVERGENCE", "begin": "DIVERGENCE", "batch": "BAD_DATA", "half": "PRECISION", "scale": "PRECISION",
         "state": "BAD_STATE", "weights": "BAD_STATE"}
FEW = [("perceptron", "batch", 1), ("residual", "state", 1)]
RUNS = {"rate": 4, "batch": 2, "half": 2}  # of each architecture; of the others one


def cases_of(seeds):
    return [(architecture, cause, seed) for architecture in ARCHITECTURES for cause in ROOTS for seed in seeds[:RUNS.get(cause, 1)]]


def run(case):
    """{"case", "bad", "root", "cured", "why"} of one observed run, rewound from its first file."""
    test = AttachTest()
    with tempfile.TemporaryDirectory(prefix="nanquest-roots-") as scratch:
        test.scratch = pathlib.Path(scratch)
        process = test.observed(HERE / "made.py", *case, STEPS, "out.json", options=("--level", "trace", "--tape", TAPE))
        if process.returncode:
            raise RuntimeError(f"{case}: {process.stderr}")
        bad = json.loads((test.scratch / "out.json").read_text())["bad"]
        said = {"case": case, "bad": bad, "root": None, "cured": [], "why": "", "holds": True}
        if bad is None or not test.incidents():
            return said
        if ROOTS[case[1]] == "DIVERGENCE":
            test.plain(HERE / "made.py", *case, STEPS, "less.json", "factor=0.1")
            said["holds"] = json.loads((test.scratch / "less.json").read_text())["bad"] is None
        found = test.replay("rewind", test.incidents()[0], "--placebos", 4)
        rehearsal = found.get("rehearsal") or {}
        root = rehearsal.get("root") or {}
        said.update(root=root.get("cause"), cured=root.get("cured", []),
                    why=rehearsal.get("not_tried") or "" if found["reached"] else "not reached")
        return said


def judge(result):
    if result["bad"] is None or not result["holds"]:
        return "healthy"
    if result["root"] in (None, "UNKNOWN"):
        return "unknown"
    return "right" if result["root"] == ROOTS[result["case"][1]] else "wrong"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--unseen", action="store_true")
    parser.add_argument("--few", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--rows", action="store_true")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    cases = FEW if options.few else cases_of((101, 102, 103, 104) if options.unseen else (1, 2, 3))
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(run, cases))
    count = dict.fromkeys(("right", "unknown", "wrong", "healthy"), 0)
    table = {cause: dict(count) for cause in ROOTS}
    for result in results:
        verdict = judge(result)
        count[verdict] += 1
        table[result["case"][1]][verdict] += 1
        if options.rows:
            print(*result["case"], f"bad at {result['bad']}: {verdict}: {result['root']}", result["cured"], result["why"], flush=True)
    if options.table:
        print("| root | right | unknown | wrong |\n|---|---|---|---|")
        for cause, row in table.items():
            print(f"| {ROOTS[cause]} ({cause}) | {row['right']} | {row['unknown']} | {row['wrong']} |")
    tried = sum(count.values()) - count["healthy"]
    print(f"{tried} runs went bad: {count['right']} right, {count['unknown']} unknown, {count['wrong']} wrong")
    assert tried >= (len(FEW) if options.few else 20), "too few runs went bad"
    assert not options.few or count["right"] == tried, "not right"
    assert count["wrong"] <= 0.03 * tried, "wrong roots"


if __name__ == "__main__":
    main()
