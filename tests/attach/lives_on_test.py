"""What lives on and is bad after a step is told, wherever the program keeps it, and what only carries that on is counted."""

import json

from attached import ALWAYS, PROGRAMS, AttachTest, by_day, main

LIVES_ON = PROGRAMS / "lives_on"


class LivesOnTest(AttachTest):
    def run_program(self, name, *arguments, level="trace"):
        self.clear("run")
        process = self.observed(LIVES_ON / f"{name}.py", *arguments, options=("--level", level, *ALWAYS))
        self.assert_exit(process)
        return process.stderr

    def told(self):
        """(step, carried on, bad anew) of the incidents."""
        incidents = json.loads((self.scratch / "run" / "manifest.json").read_text())["incidents"]
        return [(i["step"], i["carried_on"], i["repeated"]) for i in incidents]

    def test_running_statistics_of_a_skipped_step(self):
        for level in by_day(("trace",), ("guard", "watch")):
            with self.subTest(level):
                said = self.run_program("batch_norm", level=level)
                self.assertEqual(self.told(), [(70, 0, 0)], said)
                if level != "guard":
                    self.assertIn("buffer 1.running_mean and 1 more became NaN or Inf", said)
                    summary = json.loads((self.scratch / "run/manifest.json").read_text())["incidents"][0]["summary"]
                    self.assertIn("buffer 1.running_mean", summary)
                self.assertIn("at the end buffer 1.running_mean and 1 other tensor are still NaN or Inf", said.splitlines()[-1])

    def test_overflows_anew(self):
        said = self.run_program("overflows_anew")
        self.assertEqual(self.told(), [(0, 0, 99)], said)
        self.assertEqual(len(self.incidents()), 1)
        for words in ("100 incidents in 100 steps", "no step of 100 was finite", "the loss scale fell to"):
            self.assertIn(words, said.splitlines()[-1])

    def test_an_average_in_a_gradient_hook(self):
        said = self.run_program("momentum")
        self.assertEqual(len(self.told()), 1, said)
        step, carried_on, _ = self.told()[0]
        self.assertEqual(step + 1 + carried_on, 60)
        self.assertIn(f"step {step}: tensor average[2.weight] and 1 more became NaN or Inf", said)
        self.assertNotIn("still looking", said)

    def test_weights_between_update_and_pass(self):
        said = self.run_program("projected")
        self.assertEqual(self.told()[0][0], 8, said)
        self.assertEqual(len(self.told()), 1)
        self.assertIn("step 8: aten::div_ made parameter 0.weight NaN or Inf between the update and the next pass", said)
        self.assert_bit_exact(self.incidents()[0])
        verdict = self.replay("diagnose", self.incidents()[0])
        self.assertEqual((verdict["cause"], verdict["culprit"]["op"]), ("DIV_ZERO", "aten::div_"))

    def test_a_shadow_copy_that_is_cast(self):
        said = self.run_program("shadow")
        self.assertEqual([step for step, *_ in self.told()], [15], said)
        self.assertIn("step 15: aten::_to_copy made tensor shadow.0.running_var NaN or Inf", said)
        verdict = self.replay("diagnose", self.incidents()[0])
        self.assertEqual((verdict["cause"], verdict["culprit"]["op"]), ("FP16_OVERFLOW", "aten::_to_copy"))

    def test_a_copy_of_bad_weights_is_carried_on(self):
        said = self.run_program("target")
        self.assertEqual(self.told(), [(12, 27, 0)], said)

    def test_nets_that_never_train_in_turn_share_no_step(self):
        said = self.run_program("two_nets")
        self.assertEqual([step for step, *_ in self.told()], [24], said)

    def test_others(self):
        names = {"teacher": "tensor teacher.0.bias", "list": "tensor average[0]", "half": "tensor half['0.weight']",
                 "pruned": "buffer 1.running_var", "moments": "optimizer state momentum_buffer.0.weight",
                 "smoothed": "7 more", "counter": "buffer calls"}
        for what in by_day(("list", "moments", "smoothed"), ("teacher", "half", "pruned", "counter")):
            with self.subTest(what):
                said = self.run_program("more", what)
                self.assertEqual([step for step, *_ in self.told()], [9], said)
                self.assertIn(names[what], said)

    def test_what_programs_do_between_their_steps_is_no_harm(self):
        for what in by_day(("monitors", "swaps", "calibrates"), ("holes", "average", "masks", "evaluates")):
            for level in by_day(("trace",), ("watch",)):
                with self.subTest(what, level=level):
                    self.assertIn("no incident in 24 steps", self.run_program("healthy", what, level=level))


if __name__ == "__main__":
    main()
