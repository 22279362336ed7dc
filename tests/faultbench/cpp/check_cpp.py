#!/usr/bin/env python3
"""Checks the truths of the C++ programs by their own tracer, by fp64 and by the repaired program: check_cpp.py PROGRAM."""

import json
import re
import subprocess
import sys

import truths

DECOYS = ("masked_fill", "masked_fill_", "full", "fill_")  # constants made by hand, and a library's own log-space zeros
UNWRITTEN = ("empty", "empty_like", "new_empty", "empty_strided")


def run(program, family, case, *more):
    """(births of the step of the strike, number of ops, harm by step)."""
    fields = case.program
    command = [program, family, case.name, "--strike", str(fields.strike), "--seed", str(fields.seed), "--precision", fields.precision, *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, (command, done.stderr[-500:])
    lines = [json.loads(text) for text in done.stdout.splitlines() if text.startswith("{")]
    harm = {}
    for step, words in re.findall(r"harm before the update at step (\d+):(.*)", done.stdout):
        harm[int(step)] = set(words.split())
    for step, words in re.findall(r"^step (\d+) loss \S+(.*)", done.stdout, re.M):
        harm[int(step)] |= set(words.split())
    return [line for line in lines if "op" in line], next((line["ops"] for line in lines if "op" not in line), 0), harm


def first_of(births, kind):
    """The first such op and those around it: a composite op's parts end before it does."""
    chain = []
    for birth in births:
        if birth[kind] and birth["op"].removeprefix("aten::") not in DECOYS + UNWRITTEN and (not chain or birth["depth"] < chain[-1]["depth"]):
            chain.append(birth)
        if chain and chain[-1]["depth"] == 0:
            break
    return chain


def check(program, family, case):
    truth, strike = case.truth, case.program.strike
    births, ops, harm = run(program, family, case, "--traced")
    wrong = [] if ops >= 200 else [f"only {ops} ops"]
    if not truth.cause:
        return wrong + [f"step {s}: {h}" for s, h in harm.items() if h]
    wrong += [f"before the strike, step {s}: {h}" for s, h in harm.items() if h and s < strike]
    wrong += [f"without the fault, step {s}: {h}" for s, h in run(program, family, case, "--control")[2].items() if h]
    wrong += [f"repaired, step {s}: {h}" for s, h in run(program, family, case, "--repaired")[2].items() if h]
    now = {h for h in harm[strike] if h != "weight" or "weight" in truth.harm} or {"wrong"}
    if now != set(truth.harm):
        wrong.append(f"harm is {sorted(now)}, not {sorted(truth.harm)}")
    if truth.by != "read":
        kind = "nan_birth" if truth.by == "nan_birth" else "birth"
        chain = first_of(births, kind)
        if not any(b["op"].removeprefix("aten::") in truth.op and b["backward"] == (truth.phase == "backward") for b in chain):
            wrong.append(f"the first is {chain}")
    fp64 = run(program, family, case, "--precision", "fp64")[2][strike]
    if truth.precision == "curable" and fp64 or truth.precision == "structural" and not fp64:
        wrong.append(f"precision is not {truth.precision}: {fp64}")
    return wrong


def main():
    failed = 0
    for family, (source, cases) in truths.FAMILIES.items():
        assert source
        for case in cases:
            wrong = check(sys.argv[1], family, case)
            failed += bool(wrong)
            print("FAIL" if wrong else "ok  ", f"cpp/{family}/{case.name}", *wrong, flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
