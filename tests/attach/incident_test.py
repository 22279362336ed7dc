"""Programs that go wrong: the right step is written, comes back bit for bit, and has the right cause."""

import json
import shutil

from attached import PROGRAMS, AttachTest, by_day, main

MLP, TRANSFORMER, BARE = PROGRAMS / "mlp.py", PROGRAMS / "transformer.py", PROGRAMS / "bare.py"


class IncidentTest(AttachTest):
    def first_incident(self, program, *arguments, step, level="watch"):
        shutil.rmtree(self.scratch / "run", ignore_errors=True)
        process = self.observed(program, *arguments, options=("--level", level))
        self.assert_exit(process)
        found = self.incidents()
        self.assertTrue(found, process.stderr)
        self.assertEqual(found[0].name, f"step-{step:08d}.r0.h5")
        self.assertIn(f"nanquest: step {step}: ", process.stderr)
        self.assertIn(f"nanquest-replay run/incidents/{found[0].name}", process.stderr)
        return found[0]

    def assert_cause(self, snapshot, cause, **culprit):
        verdict = self.replay("diagnose", snapshot)
        self.assertEqual(verdict["cause"], cause, verdict)
        for key, value in culprit.items():
            self.assertEqual(verdict["culprit"][key], value, verdict)
        return verdict

    def test_infinite_sample(self):
        for optimizer in by_day(("adamw-foreach", "adafactor"), ("adamw-fused", "adamw", "sgd")):
            with self.subTest(optimizer):
                snapshot = self.first_incident(MLP, optimizer, 4, "inf", step=4)
                self.assert_bit_exact(snapshot)
                verdict = self.assert_cause(snapshot, "BAD_DATA", module="0", value="+inf", count=1)
                self.assertEqual(verdict["phase"], "input")
                self.assertIn("input", verdict["explanation"])

    def test_nan_sample(self):
        snapshot = self.first_incident(MLP, "sgd", 5, "nan", step=5)
        self.assert_bit_exact(snapshot)
        self.assert_cause(snapshot, "BAD_DATA", module="0", value="nan", count=1)

    def test_the_step_after_it_has_bad_weights(self):
        for level in by_day(("trace",), ("watch",)):
            with self.subTest(level):
                process = self.observed(MLP, "sgd", 4, "nan", run_dir=level,
                                        options=("--level", level, "--record-steps", "5"))
                self.assert_exit(process)
                self.assertEqual([p.name for p in self.incidents(level)], ["step-00000004.r0.h5"])
                after = self.scratch / level / "recordings" / "step-00000005.r0.h5"
                self.assert_bit_exact(after)
                self.assert_cause(after, "BAD_STATE")

    def test_what_only_carries_on_the_damage_is_said_once(self):
        for level in by_day(("guard", "watch"), ("trace",)):
            with self.subTest(level):
                process = self.observed(MLP, "sgd", 4, "nan", run_dir=level, options=("--level", level))
                self.assert_exit(process)
                self.assertEqual(process.stderr.count("from step 4"), 1, process.stderr)
                manifest = json.loads((self.scratch / level / "manifest.json").read_text())
                self.assertEqual([(i["step"], i["carried_on"]) for i in manifest["incidents"]], [(4, 3)])

    def test_so_is_what_a_hand_written_update_carries_on(self):
        script = self.scratch / "by_hand.py"
        script.write_text("import torch\n"
                          "torch.manual_seed(0)\n"
                          "model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 1))\n"
                          "for step in range(8):\n"
                          "    model.zero_grad()\n"
                          "    loss = model(torch.randn(3, 4) * (float('nan') if step == 4 else 1)).square().mean()\n"
                          "    loss.backward()\n"
                          "    for p in model.parameters():\n"
                          "        p.data.add_(p.grad, alpha=-0.1)\n")
        for level in by_day(("trace",), ("watch",)):
            with self.subTest(level):
                process = self.observed(script, run_dir=level, options=("--level", level))
                self.assert_exit(process)
                self.assertEqual([p.name for p in self.incidents(level)], ["step-00000004.r0.h5"])
                self.assertEqual(process.stderr.count("from step 4"), 1, process.stderr)
                manifest = json.loads((self.scratch / level / "manifest.json").read_text())
                self.assertEqual([(i["step"], i["carried_on"]) for i in manifest["incidents"]], [(4, 3)])

    def test_fp16_overflow_in_a_transformer(self):
        for arguments in by_day((("fp16", "fused", 4, "none", 2), ("fp16", "foreach", 1, "scaler", 2)),
                                (("fp16", "foreach", 4, "none", 1), ("fp16", "foreach", 4, "scaler", 1),
                                 ("fp16", "fused", 4, "scaler", 1))):
            with self.subTest(arguments):
                snapshot = self.first_incident(TRANSFORMER, *arguments, step=arguments[2])
                self.assert_bit_exact(snapshot)
                self.assert_cause(snapshot, "FP16_OVERFLOW", op="aten::mm", module="encoder.layers.0.self_attn")

    def test_bf16_has_the_range(self):
        process = self.observed(TRANSFORMER, "bf16", "foreach", 4, "none", 1, options=("--level", "watch"))
        self.assert_exit(process)
        self.assertEqual(self.incidents(), [])
        self.assertEqual(self.probes_lines(process), ["nanquest: no incident in 6 steps"])

    def test_a_step_that_nobody_watched(self):
        snapshot = self.first_incident(MLP, "sgd", 5, "nan", step=5, level="trace")
        self.assertEqual(self.assert_bit_exact(snapshot)["basis"], "survivors")
        self.assert_cause(snapshot, "BAD_DATA", module="0", value="nan", count=1)
        self.first_incident(TRANSFORMER, "fp16", "fused", 4, "none", 1, step=4, level="trace")
        verdict = self.assert_cause(self.incidents()[0], "FP16_OVERFLOW", op="aten::mm",
                                    module="encoder.layers.0.self_attn")
        self.assertTrue(any("transformer.py" in frame for frame in verdict["culprit"]["stack"]), verdict["culprit"])

    def test_without_modules(self):
        snapshot = self.first_incident(BARE, step=3)
        self.assert_bit_exact(snapshot)
        self.assert_cause(snapshot, "DIV_ZERO", op="aten::div")

    def test_names_and_history_are_in_the_file(self):
        import h5py

        snapshot = self.first_incident(TRANSFORMER, "fp16", "foreach", 4, "none", 1, step=4)
        with h5py.File(snapshot) as file:
            self.assertIn("encoder.layers.0.self_attn.in_proj_weight", file["parameters"])
            self.assertIn("exp_avg.head.bias", file["optimizer"])
            self.assertEqual(file["batch/tokens"].shape, (4, 6, 32))
            self.assertLess(float(abs(file["batch/tokens"][:]).max()), 6.6e4)

    def test_every_process_is_in_the_manifest(self):
        self.first_incident(MLP, "sgd", 4, "nan", step=4)
        manifest = json.loads((self.scratch / "run" / "manifest.json").read_text())
        self.assertEqual([i["step"] for i in manifest["incidents"]], [4])
        self.assertEqual(manifest["status"], "finished")

    def test_stop(self):
        process = self.observed(MLP, "sgd", 4, "nan", options=("--level", "watch", "--on-incident", "stop"))
        self.assert_exit(process, 4)
        self.assertEqual([p.name for p in self.incidents()], ["step-00000004.r0.h5"])
        self.assert_bit_exact(self.incidents()[0])

    def test_stop_does_not_train_where_the_probe_cannot_load(self):
        library = self.scratch / "other" / "libnanquest_attach.so"
        library.parent.mkdir()
        library.write_bytes(b"")
        library.with_suffix(".version").write_text("1.0.0\n")
        for policy, code in (("stop", 2), ("continue", 0)):
            with self.subTest(policy):
                process = self.observed(MLP, "sgd", 4, "nan", options=("--on-incident", policy), run_dir=policy,
                                        NANQUEST_ATTACH_LIBRARY=str(library))
                self.assert_exit(process, code)
                self.assertIn("the probe was built for PyTorch 1.0.0", process.stderr)

    def test_skip(self):
        for optimizer in by_day(("adamw-fused", "sgd"), ("adamw-foreach", "adafactor")):
            with self.subTest(optimizer):
                run = f"run-{optimizer}"
                process = self.observed(MLP, optimizer, 4, "nan", "weights.pt", run_dir=run,
                                        options=("--level", "watch", "--on-incident", "skip"))
                self.assert_exit(process)
                self.assertEqual([p.name for p in self.incidents(run)][:1], ["step-00000004.r0.h5"])
                import torch
                state = torch.load(self.scratch / "weights.pt")
                for name in ("0.weight", "0.bias", "4.weight", "4.bias"):
                    self.assertTrue(bool(torch.isfinite(state[name]).all()), name)


if __name__ == "__main__":
    main()
