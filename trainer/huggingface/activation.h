/// Activation functions of the MLP, with their names in transformers. Inside this room only.
#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>
#include <utility>

#include "trainer/huggingface/decoder_config.h"

namespace nanquest::trainer {

inline constexpr std::pair<MlpActivation, std::string_view> kActivations[] = {
    {MlpActivation::silu, "silu"},
    {MlpActivation::silu, "swish"},
    {MlpActivation::gelu, "gelu"},
    {MlpActivation::gelu_tanh, "gelu_new"},
    {MlpActivation::gelu_tanh, "gelu_pytorch_tanh"},
    {MlpActivation::quick_gelu, "quick_gelu"},
    {MlpActivation::relu, "relu"}};

at::Tensor bent(const at::Tensor& x, MlpActivation activation);

}  // namespace nanquest::trainer
