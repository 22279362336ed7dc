"""--nothing-learned: planted trainings in which something is never learned are said within 60 updates, healthy ones never."""

import json

from attached import ALWAYS, NIGHT, PROGRAMS, AttachTest, by_day, main

LEARNS = PROGRAMS / "learns"
CUT = ("NO_GRADIENT", "body.0.weight", "2 of 4 weights of AdamW have had no gradient in 48 updates")
NONE = "no weight has had a gradient in 48 updates of "
SWALLOWED = "have not changed by a bit in 48 updates although their gradients are not 0"
STUCK = "averages of weights in bfloat16 have not moved in 16 updates (first: of 0.weight), although "
AGAIN = "activations that checkpointing computes again in backward are not those of forward ("
# Program -> label, first weight, part of the line.
PLANTED = {
    "detach": CUT,
    "left_out_head": ("NO_GRADIENT", "head.weight", "2 weights of the model get gradients and are in no optimizer (first: head.weight)"),
    "replaced": ("NO_GRADIENT", "", "Adam has made 48 updates without a gradient: its 6 weights belong to no module"),
    "dead_relu": ("NO_GRADIENT", "0.weight", "the gradients of 4 of 6 weights of SGD hold zeros only (first: 0.weight): every unit is off or "
                                             "saturated: aten::threshold_backward in 3"),
    "bf16_adam": ("SWALLOWED_UPDATE", "0.weight", f"6 of 6 weights of AdamW {SWALLOWED}"),
    "data": CUT,
    "no_graph": CUT,
    "loss_taken_out": ("NO_GRADIENT", "0.weight", NONE + "Adam (first: 0.weight): backward does not reach them"),
    "cleared_before_the_update": ("NO_GRADIENT", "0.weight", NONE + "SGD (first: 0.weight): they were cleared between backward and the update"),
    "added_later": ("NO_GRADIENT", "head.1.weight", "2 weights of the model get gradients and are in no optimizer (first: head.1.weight)"),
    "saturated": ("NO_GRADIENT", "0.weight", "aten::sigmoid_backward in 1 makes zeros of the gradient"),
    "bf16_sgd": ("SWALLOWED_UPDATE", "0.weight", f"6 of 6 weights of SGD {SWALLOWED}"),
    "fp16_adam": ("SWALLOWED_UPDATE", "0.weight", f"6 of 6 weights of Adam {SWALLOWED}"),
    "never_cleared": ("WRONG_GRADIENT", "4.bias", "gradients of SGD are not cleared between updates (6 weights compared"),
    "never_cleared_adam": ("WRONG_GRADIENT", "head.bias", "gradients of AdamW are not cleared between updates"),
    "cleared_elsewhere": ("WRONG_GRADIENT", "4.bias", "gradients of Adam are not cleared between updates"),
    "scale_stays": ("NO_GRADIENT", "", "the loss scaler has skipped all 20 updates: no weight has changed. Its scale stays 65536"),
    "flushed_sgd": ("UNDERFLOW", "2.weight", "gradients are flushed to zero by float16 (2.weight "),
    "flushed_adam": ("UNDERFLOW", "2.weight", "gradients are flushed to zero by float16 (2.weight "),
    "flushed_all": ("UNDERFLOW", "0.weight", "the gradients of 6 of 6 weights of SGD hold zeros only (first: 0.weight): aten::_to_copy"),
    "average_in_bf16": ("STATE_PRECISION", "0.weight", STUCK + "aten::_foreach_lerp_ writes them"),
    "average_in_a_closure": ("STATE_PRECISION", "0.weight", STUCK + "aten::_foreach_lerp_ writes them"),
    "own_average_in_bf16": ("STATE_PRECISION", "0.weight", STUCK + "aten::add_ writes them"),
    "dropout_not_kept": ("WRONG_GRADIENT", "1.noise", AGAIN),
    "dropout_not_kept_reentrant": ("WRONG_GRADIENT", "1", AGAIN),
    "noise_of_numpy": ("WRONG_GRADIENT", "1.noise", AGAIN),
    "norms_in_bf16": ("SWALLOWED_UPDATE", "1.weight", f"2 of 6 weights of AdamW {SWALLOWED} (first: 1.weight)"),
}
BY_DAY = ("detach", "left_out_head", "dead_relu", "bf16_adam", "never_cleared", "scale_stays", "flushed_adam", "dropout_not_kept", "dropout_not_kept_reentrant", "average_in_bf16")


class LearningTest(AttachTest):
    def findings(self, run_dir):
        return json.loads((self.scratch / run_dir / "manifest.json").read_text())["findings"]

    def test_planted(self):
        for name in by_day(BY_DAY, [name for name in PLANTED if name not in BY_DAY]):
            with self.subTest(name=name):
                label, first, words = PLANTED[name]
                process = self.observed(LEARNS / "planted.py", name, run_dir=name, options=("--watch-every", 50, *ALWAYS))
                self.assert_exit(process)
                said = [line for line in self.probes_lines(process) if line.startswith("nanquest: step ")]
                self.assertEqual(len(said), 1, process.stderr)
                self.assertIn(words, said[0])
                rows = self.findings(name)
                self.assertEqual([(row["kind"], row["label"]) for row in rows], [("nothing_learned", label)], rows)
                self.assertEqual(rows[0]["tensor"], first or rows[0]["tensor"])
                self.assertLess(rows[0]["step"], 60)
                self.assertIn(rows[0]["text"], said[0])

    def test_healthy(self):
        # At night each in a process of its own: what one leaves behind can't hide what another does.
        names = self.plain(LEARNS / "healthy.py", "--list").stdout.split()
        self.assertGreater(len(names), 20)
        for run in [[name] for name in names] if NIGHT else [names]:
            with self.subTest(run=run):
                process = self.observed(LEARNS / "healthy.py", *run, run_dir="-".join(run)[:20], options=("--watch-every", 50, *ALWAYS))
                self.assert_exit(process)
                self.assertEqual(process.stdout.split(), run)
                self.assertEqual(self.findings("-".join(run)[:20]), [], process.stderr)

    def test_off(self):
        process = self.observed(LEARNS / "planted.py", "bf16_adam", options=("--nothing-learned", "off"))
        self.assert_exit(process)
        self.assertEqual(self.findings("run"), [])
        self.assertEqual(self.probes_lines(process), ["nanquest: no incident in 60 steps"])

    def test_a_look_changes_no_bit(self):
        weights = []
        for options in (("--nothing-learned", "off"), ()):
            process = self.observed(LEARNS / "planted.py", "norms_in_bf16", options=options)
            self.assert_exit(process)
            weights.append(process.stdout)
        self.assertEqual(weights[0], weights[1])
        self.assertEqual(len(weights[0].split()), 1, weights)


if __name__ == "__main__":
    main()
