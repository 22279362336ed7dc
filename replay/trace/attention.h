/// attention: what the fused attention of a GPU computes, by matrix products that every device has.
///
/// No CPU has kernels for `aten::_scaled_dot_product_{flash,efficient,cudnn}_attention` and their backward.
/// As long as a step runs as it was recorded, the recorded results are used; once something before them is
/// changed, they can't be. The formulas are those of attention itself (Vaswani and others 2017,
/// arXiv:1706.03762; backward as in Dao and others 2022, arXiv:2205.14135, appendix B.4): S = scale·QKᵀ +
/// bias, P = softmax(S), O = PV; dV = PᵀdO, dP = dO·Vᵀ, dS = P∘(dP − rowsum(dO∘O)), dQ = scale·dS·K, dK =
/// scale·dSᵀ·Q, dbias = dS.
#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

#include "probe/snapshot/model.h"

namespace nanquest::trace {

/// True for the name of such an operator, forward or backward.
bool is_fused_attention(const std::string& name);

/// Computes it in at least fp32, rounds to the formats of its inputs, and puts the returned tensors in place
/// of the arguments. `outputs` says how each was recorded (null: undefined): the log-sum-exp is padded in the
/// same way. The mask of its dropout was drawn inside the kernel and is not recorded: another one is drawn
/// from `draw`. The forward op returns `draw` where the kernel returns its seed, so that its backward op
/// draws the same mask. False, and nothing changed, if a row has every key masked (kernels differ in the
/// result). Throws as ATen does.
bool compute_attention(const std::string& name, const c10::FunctionSchema& schema,
                       const std::vector<const TensorRow*>& outputs, std::int64_t draw,
                       std::vector<c10::IValue>& stack);

}  // namespace nanquest::trace
