"""How good forecasts are, on generated runs without planted faults: a learning rate decides whether activations grow out of fp16, and
when.
"""

import argparse
import concurrent.futures
import functools
import json
import pathlib
import statistics
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from attached import AttachTest  # noqa: E402

STEPS = 400
FIT = [(name, seed, rate) for name in ("decoder", "decoder-squared") for seed, rates in
       ((1, (1e-3, 3e-2, 1e-1, 3e-1)), (2, (1e-2, 1e-1, 2e-1, 4e-1)), (3, (3e-3, 5e-2, 2e-1, 1.0))) for rate in rates]
UNSEEN = [(name, 100 + seed, rate) for name, rates in
          (("decoder-plain", (1e-3, 1e-2, 3e-2, 1e-1, 3e-1)), ("residual", (1e-3, 3e-3, 1e-2, 3e-2, 1e-1)),
           ("recurrent", (1e-3, 1e-2, 3e-2, 1e-1, 3e-1)), ("mixer", (1e-3, 3e-3, 1e-2, 3e-2, 1e-1)))
          for seed in range(3) for rate in rates]
FEW = [("decoder-squared", 1, 3e-1), ("decoder", 1, 1e-3), ("mixer", 100, 3e-2)]


def run(case, options=()):
    """{"case", "first_bad", "steps", "told": [(step, text)]} of one observed run."""
    name, seed, rate = case
    test = AttachTest()
    with tempfile.TemporaryDirectory(prefix="nanquest-forecast-") as scratch:
        test.scratch = pathlib.Path(scratch)
        process = test.observed(HERE / "train.py", name, seed, rate, STEPS, "out.json", options=options)
        if process.returncode:
            raise RuntimeError(f"{case}: {process.stderr}")
        result = json.loads((test.scratch / "out.json").read_text())
        manifest = json.loads((test.scratch / "run" / "manifest.json").read_text())
        told = [(f["step"], f["place"]) for f in manifest["forecasts"]]
        places = [i["summary"] for i in manifest["incidents"]]
    return {"case": case, **result, "told": told, "incidents": places}


def judge(results):
    """Figures over runs: the header of this file says what they mean."""
    late = [r for r in results if r["first_bad"] is not None and r["first_bad"] >= 50]
    early = [r for r in results if r["first_bad"] is not None and r["first_bad"] < 50]
    healthy = [r for r in results if r["first_bad"] is None]
    for r in results:
        end = r["first_bad"] if r["first_bad"] is not None else r["steps"]
        before = [step for step, _ in r["told"] if step < end]
        last = [step for step in before if step >= end - 100]
        r["lead"] = end - last[0] if r["first_bad"] is not None and last else None
        r["alarms"] = len(before)
    alarmed_healthy = [r for r in healthy if r["alarms"]]
    foreseen = [r for r in late if r["lead"] is not None]
    told = foreseen + alarmed_healthy + [r for r in late if r["lead"] is None and r["alarms"]]
    steps = sum(r["steps"] for r in healthy)
    return {"runs": len(results), "failed late": len(late), "failed early": len(early), "healthy": len(healthy),
            "recall": len(foreseen) / len(late) if late else None,
            "precision": len(foreseen) / len(told) if told else None,
            "median lead": statistics.median(r["lead"] for r in foreseen) if foreseen else None,
            "forecasts in 1000 healthy steps": 1000 * sum(r["alarms"] for r in healthy) / steps if steps else None}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--few", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--rows", action="store_true")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    cases = FIT if options.fit else FEW if options.few else UNSEEN
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        # By default the spacing of watched steps depends on the time that they take, and so on other work of the machine.
        results = list(pool.map(functools.partial(run, options=("--watch-every", "50") if options.few else ()), cases))
    figures = judge(results)
    if options.rows:
        for r in results:
            name, seed, rate = r["case"]
            print(f"{name:16} {seed:4} {rate:7g} bad at {str(r['first_bad']):5} lead {str(r['lead']):5} "
                  f"forecasts {r['alarms']} {r['told'][:1]} {[i[:100] for i in r['incidents'][:1]]}")
    if options.table:
        print("| " + " | ".join(figures) + " |\n|" + "---|" * len(figures))
        print("| " + " | ".join("-" if v is None else f"{v:.3g}" for v in figures.values()) + " |")
    else:
        print(json.dumps(figures))
    if options.few:
        bad, good = results[0], results[1]
        assert bad["first_bad"] is not None and bad["lead"], "the failure was not foreseen"
        assert good["first_bad"] is None and not good["alarms"], "a healthy run has a forecast"
    else:  # the other goals are not reached on these (docs/evidence.md); a tool that cries wolf is switched off
        assert figures["forecasts in 1000 healthy steps"] <= 1, "too many forecasts in healthy runs"


if __name__ == "__main__":
    main()
