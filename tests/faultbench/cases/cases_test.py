#!/usr/bin/env python3
"""Small programs, one file a kind: what the default level records of each, replayed, is called what it is.

  cases_test.py                 # all kinds
  cases_test.py rate written    # these
  cases_test.py --show KIND     # and what is said of each
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import types

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import programs  # noqa: E402

SECONDS = 200


def each(ways, **expected):
    return {way: expected for way in ways}


NEVER_BF16 = r"[Tt]rain in bf16"
HIGH = {"origin": "op", "phase": "forward"}
WRITTEN = {"cause": "BAD_SETTING", "origin": "op", "phase": "forward", "says": r"program itself wrote nan.*written\.py"}
ABSURD = {"cause": "BAD_DATA", "origin": "input", "phase": "input", "step": 10, "says": r"\[13, 2\].*step 9", "poison": [13], "never": NEVER_BF16}

RATE = {"advice": r"^Lower the learning rate", "never": NEVER_BF16}
SET = {"cause": "BAD_SETTING", "origin": "setting"}
IGNORED = {"origin": "op", "phase": "forward", "step": 6}
INFINITE_TARGET = {"cause": "BAD_DATA", "origin": "input", "phase": "input", "step": 6, "poison": [5]}

# kind: {arguments: what is true}. `says` is looked for in explanation and advice, `never` must not be there.
CASES = {
    "saturates": {
        # The derivative of a power may leave the format as well, and then it is what harms.
        "gelu": {"cause": "FP16_OVERFLOW", "origin": "op"}, "square": {"cause": "FP16_OVERFLOW", "origin": "op"},
        "cube": {"cause": "FP16_OVERFLOW", "op": "mul", **HIGH},
        "softcap": {"cause": "FP16_OVERFLOW", **HIGH},
        **each(("erf", "atan", "addcmul", "product", "logsigmoid", "single"), cause="FP16_OVERFLOW", origin="op")},
    "closed": each(("root", "power", "choice", "mask", "clamp", "cube_root", "hypot", "mean_square", "indexed"), cause="SINGULAR_GRAD", origin="op", phase="backward", step=10),
    "written": each(("masked_fill", "item", "mask", "where", "fill", "index_fill", "pad", "scatter", "index_put"), **WRITTEN, step=5)
    | each(("full", "masked_scatter", "index_copy"), cause="BAD_DATA", origin="input", step=5, says=r"program itself wrote NaN.*written\.py"),
    "absurd": {
        **each(("tanh 1e20", "tanh 9.97e36", "tanh 3e38", "relu 1e25", "half 3e6", "cubed 1e14"), **{**ABSURD, "says": r"row 333.*\[13, 2\].*step 9"}),
        **each(("gathered 1e20", "stacked 1e20"), **{**ABSURD, "says": ABSURD["says"]}),
        "window 9.97e36": {**ABSURD, "says": r"\[1, 4, 0\].*step 9", "poison": [1]}},
    "rate": {
        **each(("adamw", "rmsprop", "adagrad"), **RATE, says="step 0 "),
        **each(("sgd", "fp32"), **RATE, **SET, says="step 0 "),
        **each(("adam_late", "second_stage"), **RATE, **SET, says="step 10 "),
        "batch": {"cause": "FP16_OVERFLOW", "says": "step 10 "}},
    "infinite": each(("beta", "tensor", "weight", "temperature", "softplus", "alpha", "addcmul", "lerp", "exponent", "numpy"), cause="BAD_SETTING", origin="setting", phase="forward", step=0),
    "pole": each(("atan", "tanh", "sigmoid", "expm", "erf", "bf16"), cause="DIV_ZERO", origin="op", phase="forward", op="div", step=7)
    | each(("logsigmoid", "ndtr"), cause="DIV_ZERO", origin="op", phase="forward", op="div", step=7)
    | each(("reciprocal", "power"), cause="DIV_ZERO", origin="op", phase="forward", op="reciprocal|pow", step=7) | {"rsqrt": {"cause": "DIV_ZERO", "origin": "op", "phase": "forward", "op": "rsqrt", "step": 7}},
    "unwritten": each(("tail", "first", "middle", "allocated", "doubled"), cause="UNINITIALIZED", origin="op", op="mini::part", step=7),
    "ignored": {
        **each(("mean", "masked", "selected", "weighted"), **IGNORED, cause="EMPTY_REDUCTION", says=r"^All 16 labels are ignored \(-100\)"),
        "divided": {**IGNORED, "cause": "DIV_ZERO", "says": r"^All 16 labels are ignored \(-100\)"},
        "gathered": {**IGNORED, "cause": "DIV_ZERO", "says": r"^All 16 labels are ignored \(255\)"}},
    "targets": {
        **each(("mse", "huber"), **INFINITE_TARGET, says="target of the loss is not finite.*sample 5"),
        **each(("l1", "poisson", "soft"), **INFINITE_TARGET, says="sample 5"),
        "masked": {"cause": "INFEASIBLE_TARGET", "origin": "op", "step": 6, "poison": [7]}},
    "before": each(("labels",), rewind=r"root +BAD_DATA: .*with skip=40 ", says="step 40"),
}


def recorded(recorder, kind, arguments, out):
    job = {"file": str(HERE / f"{kind}.py"), "arguments": arguments.split(), "out": str(out), "name": "program", "level": "trace",
           "on_incident": "continue", "seconds": SECONDS}
    out.mkdir(parents=True)
    if kind == "before":  # the steps before it are run again, from a tape
        command = [sys.executable, "-m", "nanquest", "run", "--tape", "--run-dir", out / "run", "--", sys.executable, job["file"], *job["arguments"]]
        subprocess.run(command, cwd=out, capture_output=True, timeout=SECONDS, env=programs.environment())
    else:
        recorder.run(job)
    return sorted(p for p in (out / "run" / "incidents").glob("step-*.h5") if not p.name.endswith(".replay.h5"))


def wrong(expected, verdict, file):
    """What is not as it is."""
    culprit, said = verdict["culprit"] or {}, f"{verdict['explanation']} {verdict.get('advice') or ''} {(verdict.get('fix') or {}).get('advice') or ''}"
    got = {"cause": verdict["cause"], "origin": verdict["origin"], "phase": verdict["phase"], "step": verdict["step"],
           "poison": verdict["samples"]["poison"]}
    found = [f"{k}: {got[k]!r}, not {v!r}" for k, v in expected.items() if k in got and got[k] != v]
    op = culprit.get("op", "").removeprefix("aten::").removesuffix("_")
    if "op" in expected and not re.fullmatch(expected["op"], op):
        found.append(f"op: {op}, not {expected['op']}")
    if "says" in expected and not re.search(expected["says"], said, re.DOTALL):
        found.append(f"does not say {expected['says']!r}")
    if "never" in expected and re.search(expected["never"], said):
        found.append(f"says {expected['never']!r}")
    if "advice" in expected and not re.search(expected["advice"], verdict.get("advice") or ""):
        found.append(f"advises {verdict.get('advice')!r}")
    if "rewind" in expected:
        done = subprocess.run([programs.BIN / "nanquest-replay", "rewind", file, "-q"], capture_output=True, text=True, timeout=SECONDS)
        if not re.search(expected["rewind"], done.stdout):
            found.append(f"rewind: {done.stdout}{done.stderr}")
    return found


def main():
    show = "--show" in sys.argv
    kinds = [a for a in sys.argv[1:] if not a.startswith("--")] or list(CASES)
    recorder, failed, total = programs.Recorder(False), 0, 0
    with tempfile.TemporaryDirectory(prefix="nanquest-cases-") as folder:
        for kind in kinds:
            for arguments, expected in CASES[kind].items():
                total += 1
                files = recorded(recorder, kind, arguments, pathlib.Path(folder) / f"{kind}-{arguments.replace(' ', '-')}")
                verdict, trouble = programs.replayed(files[0], SECONDS) if files else (None, "no incident")
                found = [trouble] if verdict is None else wrong(types.MappingProxyType(expected), verdict, files[0])
                failed += bool(found)
                print("FAIL" if found else "ok  ", kind, arguments, "; ".join(found), flush=True)
                if verdict and (show or found):
                    keys = ("step", "phase", "cause", "confidence", "origin", "explanation", "advice")
                    print(json.dumps({k: verdict.get(k) for k in keys} | {"op": verdict["culprit"]["op"], "claims": verdict.get("claims")}, indent=1))
    recorder.close()
    print(f"{total - failed} of {total} right")
    return 1 if failed or not total else 0


if __name__ == "__main__":
    sys.exit(main())
