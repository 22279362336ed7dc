"""TRL's scripts as they are, under `nanquest run`: see official_case.py."""

from attached import main
from official_case import QUIET, TORCHRUN, OfficialTest, needs

LLAMA = {"op": "aten::pow", "module": "model.layers.0.input_layernorm", "cause": "FP16_OVERFLOW", "phase": "forward"}
ADAPTED = {**LLAMA, "module": "base_model.model.model.layers.0.input_layernorm"}


@needs("", "transformers", "accelerate", "datasets", "trl")
class TrlTest(OfficialTest):
    def script(self, kind, culprit, *more, launch=(), processes=1, rank=None):
        """Its defaults are bf16 and checkpointed activations."""
        self.check([*launch, "-m", f"trl.scripts.{kind}", "--model_name_or_path", "tiny/chat", "--max_steps", "12",
                    "--per_device_train_batch_size", "4", "--save_strategy", "no", *QUIET, *more],
                   ("--dataset_name", f"chats-{kind}"), ("--dataset_name", f"chats-poisoned-{kind}"), culprit, processes, rank=rank)

    def test_sft(self):
        self.script("sft", LLAMA)

    def test_dpo(self):
        self.script("dpo", LLAMA)

    def test_dpo_in_two_processes(self):
        """The bad sample is in the sixth batch (the step at which one process goes bad), and of those the second rank has the odd ones."""
        self.script("dpo", LLAMA, launch=TORCHRUN, processes=2, rank=1)

    def test_sft_with_what_people_add(self):
        self.script("sft", ADAPTED, "--use_peft", "--lora_r", "4", "--learning_rate", "1e-3", "--gradient_accumulation_steps", "2",
                    "--packing", "--max_length", "32", "--eval_strategy", "steps", "--eval_steps", "4")

    def test_dpo_with_what_people_add(self):
        self.script("dpo", ADAPTED, "--use_peft", "--lora_r", "4", "--learning_rate", "1e-3", "--precompute_ref_log_probs",
                    "--gradient_accumulation_steps", "2", "--eval_strategy", "steps", "--eval_steps", "4")


if __name__ == "__main__":
    main()
