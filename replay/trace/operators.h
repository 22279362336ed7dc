/// operators: what replay must know of single operators besides their schemas (probe/trace/op_facts.h has
/// what all parts must know).
#pragma once

#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

namespace nanquest::trace {

/// True if an op of a snapshot must never be executed: it reaches outside the tensors (files, other
/// processes, raw storages). A snapshot is not trusted.
bool is_refused(const std::string& name, const std::string& overload);

/// The author of an operator may define in plain PyTorch what it computes, as an operator of this name with
/// the same arguments (nanquest.reference, or TORCH_LIBRARY_FRAGMENT(nanquest_reference, …)): for
/// "mine::scan" it is "nanquest_reference::mine__scan".
std::string reference_name(const std::string& name);
/// True for such a name.
bool is_reference(const std::string& name);

/// True if the kernel reads this argument as its recorded dtype whatever the other tensors are (the loss
/// scaler's flags).
bool keeps_recorded_dtype(const std::string& name, const std::string& argument);

/// Operators that compute on values *and* draw random numbers: the mask is drawn in the recorded dtype, the
/// values stay wide. `stack` holds the arguments in the recorded dtype, `wide` the first one in the run
/// dtype; on true `stack` holds the returns. `drawn`: the mask, if it can't be drawn again. False: nothing
/// special, run the op. Throws what ATen throws.
bool mask_then_widen(const std::string& name, const at::Tensor& wide, const at::Tensor& drawn,
                     std::vector<c10::IValue>& stack);

/// True for those operators.
bool follows_from_mask(const std::string& name);

/// Payloads times their scales, multiplied, and the bias (may be undefined) added: what aten::_scaled_mm
/// computes before it rounds, in the format of the payloads. A scale belongs to the whole matrix, or to each
/// row of the first and each column of the second. Undefined for other layouts of scales.
at::Tensor scaled_product(const at::Tensor& a, const at::Tensor& scale_a, const at::Tensor& b,
                          const at::Tensor& scale_b, const at::Tensor& bias);

/// Operators that have kernels in their own formats only, computed as documented. `stack` holds the arguments
/// in the run dtype; on true the returns. False: run the op. Throws what ATen throws.
bool compute_wide(const std::string& name, std::vector<c10::IValue>& stack);

}  // namespace nanquest::trace
