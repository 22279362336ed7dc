"""Models of the matrix with one planted fault each, and the truth about each, written before the tool was asked.

Truth is what `labels.md` calls the culprit: the first op with finite inputs and a harmful output; for data and state the
op that first reads the bad value (views read nothing); for infinities that are meant the first op that makes them
harmful. `cause` is the true one.

Not planted: DIVERGENCE (takes many steps), RACE, COMPILER, HARDWARE, UNINITIALIZED (no two runs alike).
"""

import dataclasses

LEVELS = ("watch", "trace")


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    spec: str      # MODEL/OPTIMIZER/PRECISION/HABITS, as in the matrix
    fault: str     # of faults.FAULTS
    at: str        # the place: a key of the batch, a module, a parameter, a setting
    op: str        # "" with every other field of truth "": innocent, no incident is to be written
    module: str = ""
    phase: str = ""
    origin: str = ""
    cause: str = ""
    step: int = 3
    levels: tuple = LEVELS
    few: str = ""  # the level at which it is part of the ordinary tests
    known: dict = dataclasses.field(default_factory=dict)  # level -> what is wrong with today's verdict, and why

    def truth(self) -> dict:
        """What a verdict has to say; {} if there is to be none."""
        if not self.op:
            return {}
        return {"step": self.step, "op": self.op, "module": self.module, "phase": self.phase, "origin": self.origin,
                "cause": self.cause, "bit_exact": True}


def data(name, spec, fault, at, op, module, **more):
    return Case(name, spec, fault, at, op, module, "input", "input", "BAD_DATA", **more)


def state(name, spec, fault, at, op, module, origin="parameter", **more):
    return Case(name, spec, fault, at, op, module, "input", origin, "BAD_STATE", **more)


def forward(name, spec, fault, at, cause, op, module=None, **more):
    return Case(name, spec, fault, at, op, at if module is None else module, "forward", "op", cause, **more)


def backward(name, spec, fault, at, cause, op, **more):
    return Case(name, spec, fault, at, op, at, "backward", "op", cause, **more)


def update(name, spec, fault, at, cause, op, **more):
    return Case(name, spec, fault, at, op, "", "optimizer", "setting" if cause == "BAD_SETTING" else "op", cause, **more)


def innocent(name, spec, fault, at, **more):
    return Case(name, spec, fault, at, "", **more)


ALL = (
    data("picture", "resnet/sgd/fp32/plain", "nan_in_batch", "x", "aten::convolution", "conv1"),
    data("time", "unet/adamw-foreach/fp32/plain", "nan_in_batch", "time", "aten::mul", "UNet"),
    data("patches", "vit/adamw-fused/bf16/plain", "inf_in_batch", "pixel_values", "aten::_to_copy",
         "vit.embeddings.patch_embeddings.projection"),
    data("sound", "ctc/adamw-foreach/fp32/plain", "nan_in_batch", "sound", "aten::convolution", "conv.0", few="trace"),
    data("nodes", "gcn/sgd/fp32/plain", "minus_inf_in_batch", "x", "aten::addmm", "layers.0.linear"),
    data("second-micro-batch", "clip/adamw-single/fp32/accumulate", "nan_in_batch", "pixel_values", "aten::convolution",
         "vision_model.embeddings.patch_embedding"),

    state("weight", "gpt2/adamw-foreach/fp32/plain", "nan_in_weight", "transformer.h.1.mlp.c_fc.weight", "aten::addmm",
          "transformer.h.1.mlp.c_fc"),
    state("cast-weight", "t5/adamw-single/bf16/plain", "inf_in_weight", "encoder.block.1.layer.1.DenseReluDense.wi_0.weight",
          "aten::_to_copy", "encoder.block.1.layer.1.DenseReluDense.wi_0"),
    state("loaded", "bert/adamw-foreach/fp32/plain", "loaded_nan", "bert.encoder.layer.1.output.dense.bias", "aten::addmm",
          "bert.encoder.layer.1.output.dense"),
    state("frequencies", "llama/adamw-fused/fp32/plain", "nan_in_buffer", "model.rotary_emb.inv_freq", "aten::mul",
          "model.rotary_emb", "buffer"),
    state("code-book", "buffers/sgd/fp32/plain", "nan_in_buffer", "book.codes", "aten::_cdist_forward", "book", "buffer"),
    state("frozen-norm", "resnet/adamw-foreach/fp32/plain", "frozen_statistics", "bn1", "aten::native_batch_norm", "bn1",
          "buffer"),
    state("first-moment", "lstm/adamw-foreach/fp32/plain", "nan_in_moment", "exp_avg head.weight", "aten::_foreach_lerp_", "",
          "optimizer_state"),
    state("momentum", "unet/sgd/fp32/plain", "inf_in_moment", "momentum_buffer middle.conv.weight", "aten::mul_", "",
          "optimizer_state"),
    state("row-variance", "mixtral/adafactor/fp32/plain", "nan_in_moment", "row_var model.layers.0.self_attn.q_proj.weight",
          "aten::lerp_", "", "optimizer_state"),

    forward("grown-weight", "gpt2/adamw-foreach/fp16/plain", "grown", "transformer.h.1.mlp.c_fc.weight 5e5",
            "FP16_OVERFLOW", "aten::addmm", "transformer.h.1.mlp.c_fc"),
    forward("weight-beyond-fp16", "llama/adamw-foreach/fp16/plain", "million_in_weight", "model.layers.1.mlp.down_proj.weight",
            "FP16_OVERFLOW", "aten::_to_copy", "model.layers.1.mlp.down_proj"),
    forward("grown-filter", "resnet/adamw-single/fp16/plain", "grown", "layer2.0.conv1.weight 1e5", "FP16_OVERFLOW",
            "aten::convolution", "layer2.0.conv1"),
    forward("gated-product", "t5/sgd/fp16/plain", "grown", "encoder.block.0.layer.1.DenseReluDense.wi_0.weight 5 "
            "encoder.block.0.layer.1.DenseReluDense.wi_1.weight 8e3", "FP16_OVERFLOW", "aten::mul",
            "encoder.block.0.layer.1.DenseReluDense"),
    forward("attention-scores", "bert/adamw-fused/fp16/eager-attention", "grown",
            "bert.encoder.layer.0.attention.self.query.weight 4e3 bert.encoder.layer.0.attention.self.key.weight 4e3",
            "FP16_OVERFLOW", "aten::bmm", "bert.encoder.layer.0.attention.self"),
    forward("state-space-input", "mamba/adamw-foreach/fp16/plain", "grown",
            "backbone.layers.1.mixer.in_proj.weight 5e4", "FP16_OVERFLOW", "aten::mm", "backbone.layers.1.mixer.in_proj"),
    forward("square-beyond-fp32", "gcn/adamw-single/fp32/plain", "square_beyond_fp32", "layers.1", "FP16_OVERFLOW",
            "aten::pow"),
    forward("absurd-rate", "gcn/adamw-foreach/fp32/plain", "setting", "lr 1e20", "FP16_OVERFLOW", "aten::addmm",
            "layers.1.linear", step=4),

    forward("hidden-row", "bert/adamw-foreach/fp32/eager-attention", "hidden_row", "", "ALL_MASKED_ROW", "aten::_softmax",
            "bert.encoder.layer.0.attention.self"),
    forward("masked-classes", "lstm/adamw-fused/fp32/plain", "masked_row", "head", "ALL_MASKED_ROW", "aten::_log_softmax", ""),
    forward("log-softmax-by-hand", "vit/sgd/fp32/plain", "log_softmax_by_hand", "classifier", "LOG_ZERO", "aten::log"),
    forward("log-relu", "gru/adamw-single/fp32/plain", "log_relu", "head", "LOG_ZERO", "aten::log", few="trace"),
    forward("log-saturated", "unet/adamw-foreach/bf16/plain", "log_one_minus_sigmoid", "last", "LOG_ZERO", "aten::log1p"),
    forward("empty-count", "gcn/adamw-foreach/bf16/plain", "divide_by_count", "layers.0", "DIV_ZERO", "aten::div", few="watch"),
    forward("no-labels", "mistral/adamw-foreach/fp32/plain", "mean_over_no_labels", "", "DIV_ZERO", "aten::div"),
    forward("constant-channels", "convnext/sgd/bf16/plain", "divide_by_norm", "features.0.0", "DIV_ZERO", "aten::div"),

    backward("root-of-zero", "lstm/sgd/fp32/plain", "root_of_zero", "head", "SINGULAR_GRAD", "aten::div", few="trace"),
    backward("power-of-zero", "gru/adamw-fused/fp32/plain", "power_of_zero", "head", "SINGULAR_GRAD", "aten::pow"),
    backward("angle-of-same", "clip/adamw-foreach/fp32/plain", "angle_of_same", "visual_projection", "SINGULAR_GRAD",
             "aten::rsqrt"),

    forward("decay-rates", "mamba/adamw-fused/fp32/plain", "hundred_in_weight", "backbone.layers.0.mixer.A_log", "EXP_OVERFLOW",
            "aten::exp", "backbone.layers.0.mixer"),
    forward("exp-of-large", "phi/sgd/fp32/plain", "exp_of_large", "model.layers.0.mlp.fc1", "EXP_OVERFLOW", "aten::exp"),
    forward("sqrt-of-negative", "qwen3/adamw-foreach/fp32/plain", "sqrt_of_negative", "model.layers.0.mlp.up_proj", "DOMAIN",
            "aten::sqrt"),
    forward("log-of-negative", "llava/adamw-foreach/fp32/plain", "log_of_negative", "model.multi_modal_projector.linear_1",
            "DOMAIN", "aten::log"),
    update("negative-moment", "gemma/adamw-single/fp32/plain", "negative_in_moment",
           "exp_avg_sq model.layers.1.self_attn.o_proj.weight", "DOMAIN", "aten::sqrt"),
    update("no-epsilon-foreach", "lstm/adamw-foreach/fp32/plain", "setting", "eps 0", "EPS_UNDERFLOW", "aten::_foreach_addcdiv_"),
    update("no-epsilon", "gru/adamw-single/fp32/plain", "setting", "eps 0", "EPS_UNDERFLOW", "aten::addcdiv_"),
    forward("norm-without-epsilon", "mistral/adamw-single/fp32/plain", "padding_without_epsilon",
            "model.layers.0.input_layernorm", "EPS_UNDERFLOW", "aten::rsqrt"),
    update("infinite-rate", "resnet/sgd/fp32/plain", "setting", "lr inf", "BAD_SETTING", "aten::add_"),
    update("nan-decay", "unet/adamw-single/fp32/plain", "setting", "weight_decay nan", "BAD_SETTING", "aten::mul_"),
    update("norm-overflow", "whisper/adamw-single/fp32/clip", "huge_loss", "", "NORM_OVERFLOW", "aten::_foreach_norm",
           levels=("watch",)),
    Case("infinite-scale", "gpt2/adamw-fused/fp16/plain", "loss_scale", "inf", "aten::mul", "", "input", "loss_scale",
         "LOSS_SCALE"),
    forward("infinite-logit", "convnext/adamw-foreach/fp32/plain", "infinite_logit", "classifier.2", "INF_LOGIT",
            "aten::_log_softmax", ""),
    forward("zero-times-inf", "qwen2/sgd/fp32/plain", "zero_times_inf", "model.layers.1.mlp.gate_proj", "ZERO_TIMES_INF",
            "aten::mul"),
    forward("mask-in-fp16", "vit/adamw-foreach/fp16/plain", "cast_mask", "classifier", "MASK_OVERFLOW", "aten::_to_copy"),
    forward("nothing-to-predict", "bert/adamw-single/bf16/plain", "nothing_to_predict", "", "EMPTY_REDUCTION",
            "aten::nll_loss_forward", "BertForMaskedLM"),
    forward("mean-of-nothing", "whisper/sgd/fp32/plain", "mean_of_nothing", "model.decoder.layer_norm", "EMPTY_REDUCTION",
            "aten::mean"),
    backward("unselected-root", "unet/adamw-fused/fp32/plain", "unselected_root", "down.1.conv", "UNSELECTED_BRANCH",
             "aten::div"),
    backward("unselected-exp", "llama/sgd/fp32/plain", "unselected_exp", "model.layers.0.mlp.up_proj", "UNSELECTED_BRANCH",
             "aten::mul"),
    backward("log-of-nothing", "gru/sgd/fp32/plain", "log_of_nothing", "head", "LOGSPACE_INF_GRAD", "aten::sub"),
    forward("singular-inverse", "buffers/adamw-foreach/fp32/plain", "inverse_of_singular", "outer", "DEGENERATE_LINALG",
            "aten::linalg_inv_ex", few="watch"),
    forward("too-many-letters", "ctc/sgd/fp32/plain", "more_letters_than_frames", "", "INFEASIBLE_TARGET", "aten::_ctc_loss"),

    innocent("causal-mask", "shared/adamw-foreach/fp32/plain", "causal_mask", "block", few="watch"),
    innocent("cubes-in-tanh", "gpt2/adamw-foreach/fp16/plain", "grown", "transformer.h.1.mlp.c_fc.weight 300"),
    innocent("calibration", "shared/adamw-fused/fp16/plain", "loss_scale", "1e9"),
)


def named(name: str) -> Case:
    return next(case for case in ALL if case.name == name)
