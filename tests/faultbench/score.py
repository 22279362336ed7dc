"""Compares what was said of a program with what is true of it."""

MEASURES = ("found", "step", "phase_op", "module", "origin", "cause", "precision", "fix", "bit_exact", "caught")
STATE = ("parameter", "buffer", "optimizer_state")


def due(truth, level):
    """Whether this level can see the fault at all: what neither loss nor gradients nor the state show is for `watch` alone."""
    return level == "watch" or set(truth.harm) != {"wrong"}


def said_of(verdict):
    """The verdict, as far as truth speaks of it."""
    culprit, fix = verdict.get("culprit") or {}, verdict.get("fix") or {}
    kinds = {c.get("change"): c.get("kind") for c in verdict.get("counterfactuals", ())}
    return {"step": verdict.get("step"), "phase": verdict.get("phase"), "op": (culprit.get("op") or "").removeprefix("aten::"),
            "module": culprit.get("module") or "", "origin": verdict.get("origin"), "cause": verdict.get("cause"),
            "precision": (verdict.get("precision") or {}).get("verdict"), "value": culprit.get("value"),
            "fix": fix.get("change") if fix.get("verified") else None, "fix_kind": kinds.get(fix.get("change")),
            "bit_exact": (verdict.get("reproduction") or {}).get("bit_exact"), "confidence": verdict.get("confidence")}


def judged(play, level, result):
    """{measure: True | False} of a program. What doesn't apply is left out.

    `result`: `incidents` (their steps), `said` (said_of the first one's verdict, or None), `finite_after` (whether the weights
    were finite at the end of a run that skips bad steps; None where there was none).
    """
    truth, program = play.case.truth, play.program
    if not truth.cause:
        return {"alarm": bool(result["incidents"])}
    strike = program.strike + truth.late
    out = {"alarm": any(step < strike for step in result["incidents"])}
    if not due(truth, level):
        return out
    said = result["said"]
    if said is None or out["alarm"]:
        none = {m: False for m in ("found", "step", "phase_op", "origin", "cause", "wrong_cause", "precision")}
        return {**out, **none, **({"module": False} if truth.module else {}), **({"fix": False} if truth.fixes else {}), **caught(truth, result)}
    modules = {m.format(place=program.place) for m in truth.module}
    right = said["cause"] in (truth.cause, *truth.also)
    out.update(found=True, step=said["step"] == strike, phase_op=said["phase"] == truth.phase and said["op"] in truth.op,
               origin=said["origin"] in (truth.origin, *truth.also_origin), cause=right,
               wrong_cause=not right and said["cause"] not in (None, "", "UNKNOWN"), precision=said["precision"] == truth.precision)
    if modules:
        out["module"] = said["module"] in modules
    if truth.fixes:
        out["fix"] = said["fix"] is not None
    if truth.cause != "HARDWARE":  # there a difference is the very proof
        out["bit_exact"] = bool(said["bit_exact"])
    return {**out, **caught(truth, result)}


def caught(truth, result):
    """Whether bad steps were kept from the weights, where loss or gradient tell before an update of weights that were good."""
    if result.get("finite_after") is None or not {"loss", "gradient"} & set(truth.harm) or truth.origin in STATE:
        return {}
    return {"caught": result["finite_after"]}


def differences(play, level, result, marks):
    """The failing measures, as lines for who builds the diagnosis."""
    truth, program, said = play.case.truth, play.program, result["said"] or {}
    if marks.get("alarm"):
        return [f"an incident at step {min(result['incidents'])}, where nothing is wrong; said: {said}"]
    expected = {"found": "an incident", "step": program.strike + truth.late, "phase_op": f"{truth.phase} {' | '.join(truth.op)}",
                "module": [m.format(place=program.place) for m in truth.module], "origin": [truth.origin, *truth.also_origin],
                "cause": [truth.cause, *truth.also], "precision": truth.precision, "fix": f"verified, of {list(truth.fixes)}", "bit_exact": True,
                "caught": "finite weights at the end of a run that skips bad steps"}
    got = dict(said, found=result["incidents"] or "none", phase_op=f"{said.get('phase')} {said.get('op')}", caught=result.get("finite_after"))
    if not marks.get("found", True):
        return [f"no incident; true: {expected['phase_op']} {truth.cause} {truth.value} harm {list(truth.harm)}"]
    return [f"{name}: {got.get(name)!r}, true: {expected[name]!r}" for name in MEASURES if marks.get(name) is False]
