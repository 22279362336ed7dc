"""Trains one combination of the matrix and prints, as JSON, how many steps it made, how many losses were not
finite, and a digest of the weights that it ended with.

usage: healthy_program.py MODEL/OPTIMIZER/PRECISION/HABITS STEPS LEVEL RUN_DIR     # LEVEL "off": without the probe
"""

import hashlib
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "planted"), str(HERE.parent / "matrix")]

import fault_program  # noqa: E402, of the planted faults: a model in training
import torch  # noqa: E402


def main():
    spec, steps, level, run_dir = sys.argv[1:]
    torch.set_num_threads(1)
    if level != "off":
        import nanquest
        if not nanquest.attach(run_dir, level):
            raise SystemExit("the probe did not attach")
    training = fault_program.Training(spec)
    bad = 0
    of_loss = training.habits.of_loss

    def counted(loss):
        nonlocal bad
        bad += not loss.detach().isfinite()
        return of_loss(loss)

    training.habits.of_loss = counted
    batches = training.habits.batches(seed=100)
    for training.step in range(100, 100 + int(steps)):  # none of them is the one that faults are planted in
        training.make_step(batches)
    digest = hashlib.sha256()
    for name, tensor in sorted(training.model.state_dict().items()):
        digest.update(name.encode() + tensor.detach().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    print(json.dumps({"steps": int(steps), "bad_losses": bad, "digest": digest.hexdigest(),
                      "scale": training.scaler.get_scale() if training.scaler.is_enabled() else 1}))


if __name__ == "__main__":
    main()
