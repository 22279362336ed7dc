"""Checks every written truth by means that no tool under test has: a tracer of its own, fp64, and the case without its fault.

    check_truth.py [--vary N] [--verbose] FAMILY.py ...
"""

import argparse
import importlib.util
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import torch  # noqa: E402
from host import Loop, varied  # noqa: E402
from tracer import Tracer, bad  # noqa: E402

CONSTANTS = ("full", "full_like", "fill_", "scalar_tensor", "masked_fill", "masked_fill_")  # made by hand, not a setting


def harm(loop):
    """What is bad now that the step is over."""
    out = set()
    if any(bad(t) for t in loop.losses):
        out.add("loss")
    if loop.bad_gradient:
        out.add("gradient")
    if any(bad(p) for p in loop.net.parameters()):
        out.add("weight")
    if any(bad(b) for b in loop.net.buffers()):
        out.add("buffer")
    states = [v for s in loop.optimizer.state.values() for v in s.values() if isinstance(v, torch.Tensor)]
    if any(bad(v) for v in states):
        out.add("state")
    return out


def play(case, traced=None, **how):
    """Runs the case; harm of each step, the trace of step `traced`, gradients of the same step."""
    loop = Loop(case, **how)
    loop.bad_gradient, trace, found, grads = False, None, [], None

    def between():
        loop.bad_gradient = any(bad(p.grad) for p in loop.net.parameters() if p.grad is not None)

    for loop.clock.step in range(case.program.strike + 1 + case.program.after):
        loop.clock.micro = 0
        loop.begin()
        if loop.clock.step == traced:
            trace = Tracer(loop, case.truth.by == "host")
            with trace:
                loop.step(between)
            trace.close()
        else:
            loop.step(between)
        found.append(harm(loop))
        if loop.clock.step == case.program.strike + case.truth.late:
            grads = [None if p.grad is None else p.grad.double().clone() for p in loop.net.parameters()]
    return loop, found, trace, grads


def harmless(loop, found, upto=None, tolerated=()):
    allowed = ({"gradient"} if loop.scaler.is_enabled() else set()) | set(tolerated)
    return [f"step {i}: {sorted(f - allowed)}" for i, f in enumerate(found[:upto]) if f - allowed]


def distance(a, b):
    pairs = [(x, y) for x, y in zip(a, b) if x is not None and y is not None]
    return float(sum((x - y).abs().sum() for x, y in pairs) / (sum(y.abs().sum() for _, y in pairs) + 1e-30))


def innocent(truth, event):
    """Whether the event is one that the truth calls innocent, or the causal mask that the decoder makes by itself."""
    if event.op == "full" and event.module.endswith(".attention"):
        return True
    return event.op in truth.decoys or f"{event.phase}:{event.op}" in truth.decoys


def culprit(truth, events):
    """The event that the truth speaks of, found by the truth's own kind of proof."""
    chosen = {
        "birth": lambda e: e.bad_out and not e.bad_in and not innocent(truth, e),
        "nan_birth": lambda e: e.nan_out and not e.nan_in and not innocent(truth, e),
        "read": lambda e: bool(e.outside) and not innocent(truth, e),
        "setting": lambda e: e.setting and e.bad_out and not e.bad_in and e.op not in CONSTANTS,
        "host": lambda e: e.changed,
        "loss": lambda e: e.op in truth.op and e.bad_out and not e.bad_in,
        "empty": lambda e: e.fresh and not innocent(truth, e),
    }[truth.by]
    return next((e for e in events if chosen(e)), None)


def check(case, verbose=False):
    """What is wrong with the truth of this case, as lines."""
    truth, strike = case.truth, case.program.strike
    step = strike + truth.late
    loop, found, trace, grads = play(case, traced=step)
    wrong = []
    births = [e for e in trace.events if e.bad_out and not e.bad_in]
    if verbose:
        print(f"   {len(trace.events)} ops, harm {sorted(found[step])}")
        shown = births[:6] + [e for e in trace.events if e.nan_out and not e.nan_in][:4] + [e for e in trace.events if e.outside or e.changed][:3]
        for e in shown:
            print("   ", e)
    if len(trace.events) < 200:
        wrong.append(f"only {len(trace.events)} ops")
    for op in truth.decoys:
        if not any(op in (e.op, f"{e.phase}:{e.op}") and (e.bad_out or e.fresh) for e in trace.events):
            wrong.append(f"decoy {op} makes no bad value")
    if not truth.cause:
        return wrong + harmless(loop, found, None, truth.tolerated)
    wrong += [f"before the strike, {line}" for line in harmless(loop, found, strike, truth.tolerated)]
    control = play(case, control=True)
    wrong += [f"without the fault, {line}" for line in harmless(control[0], control[1], None, truth.tolerated)]

    event = culprit(truth, trace.events)
    if event is None:
        return wrong + [f"no event by {truth.by}; births {births[:4]}"]
    modules = [m.format(place=case.program.place) for m in truth.module]
    if truth.op and event.op not in truth.op:
        wrong.append(f"op is {event}")
    if (truth.phase if truth.phase != "input" else event.phase) != event.phase:
        wrong.append(f"phase is {event.phase}")
    if modules and event.module not in modules:
        wrong.append(f"module is {event.module!r}, not {modules}")
    if truth.value and truth.value != "silent" and event.value != truth.value:
        wrong.append(f"value is {event.value}")
    if truth.by == "read" and truth.origin not in {o for o, _ in event.outside}:
        wrong.append(f"origin is {event.outside}")
    if truth.by != "read" and truth.origin == "op" and (event.outside or event.setting):
        wrong.append(f"origin is not the op: {event}")

    fp64 = play(case, precision="fp64")
    bad64 = bool(harmless(fp64[0], fp64[1][: step + 1]))
    if truth.precision == "curable" and bad64 or truth.precision == "structural" and not bad64:
        wrong.append(f"precision is not {truth.precision}: fp64 gives {fp64[1]}")
    now = set(found[step])
    if not now or "wrong" in truth.harm:
        far = distance(grads, play(case, control=truth.precision != "curable", precision="fp64")[3])
        now |= {"wrong"} if far > 0.3 else set()
        if verbose:
            print(f"    distance to fp64 {far:.3g}")
    if case.program.net == "cnn" and "buffer" not in truth.harm:
        now.discard("buffer")  # batch norm writes down whatever passes: it depends on the place alone
    if now != set(truth.harm):
        wrong.append(f"harm is {sorted(now)}, not {sorted(truth.harm)}")
    if "precision" in truth.fixes and bad64:
        wrong.append("more precision does not make the step finite")
    if "precision" not in truth.fixes and truth.precision == "curable":
        wrong.append("curable, but precision is no fix")
    if set(truth.fixes) - {"precision"}:
        fixed = play(case, repaired=True)
        wrong += [f"repaired, {line}" for line in harmless(fixed[0], fixed[1], None, truth.tolerated)]
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("families", nargs="+")
    parser.add_argument("--vary", type=int, default=2, help="variations of each case that are checked too")
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    failed = checked = 0
    for path in arguments.families:
        spec = importlib.util.spec_from_file_location(pathlib.Path(path).stem, path)
        family = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(family)
        assert family.SOURCE, path
        for case in family.CASES:
            chance = random.Random(f"{path}{case.name}")
            changes = [{}] + [{k: chance.choice(v) for k, v in case.vary.items()} for _ in range(arguments.vary if case.vary else 0)]
            for change in changes:
                try:
                    wrong = check(varied(case, change), arguments.verbose)
                except Exception as error:  # a case that can't run is a wrong case
                    wrong = [f"{type(error).__name__}: {error}"]
                checked, failed = checked + 1, failed + bool(wrong)
                name = f"{spec.name}/{case.name} {change or ''}"
                print("ok  " if not wrong else "FAIL", name, *wrong, sep="\n     " if wrong else " ", flush=True)
    print(f"{checked} checked, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
