/// values: small functions on tensors for causes; all of them copy to fp64 on the CPU.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "replay/case/case.h"

namespace nanquest {

/// The format of a tensor's elements ("fp16", "bf16", …), "" for integers and bool.
std::string format_name(const at::Tensor& tensor);
/// Largest finite value of that format; nothing for integers and bool.
std::optional<double> format_max(const at::Tensor& tensor);
/// Smallest normal value of that format; nothing for integers and bool.
std::optional<double> format_tiny(const at::Tensor& tensor);

/// As fp64 (fp8 included); integers and bool convert too, complex numbers to their absolute values.
at::Tensor wide(const at::Tensor& tensor);
/// Floating-point or complex numbers.
bool can_be_bad(const at::Tensor& tensor);
/// True where an element is NaN or infinite.
at::Tensor bad_mask(const at::Tensor& tensor);
/// Number of true elements.
std::int64_t count_true(const at::Tensor& mask);
bool all_finite(const at::Tensor& tensor);
/// Largest |x| of the finite elements, 0 if there is none.
double finite_amax(const at::Tensor& tensor);
/// `tensor` expanded to `shape`, or nothing if it does not broadcast.
std::optional<at::Tensor> broadcast(const at::Tensor& tensor, at::IntArrayRef shape);

/// A view without expanded dimensions, so that it may be written to.
at::Tensor unexpanded(at::Tensor tensor);

/// Position of argument `name` in the op's schema; nothing if this LibTorch has no such op, or the op no such
/// argument.
std::optional<std::size_t> argument_position(const OpRow& op, std::string_view name);
/// Name of the argument at `position` in the op's schema; "" if there is none.
std::string argument_name(const OpRow& op, std::size_t position);
/// The argument `name` of `op` in the run as recorded; None if there is no such argument.
c10::IValue argument(const Case& c, std::int32_t op, std::string_view name);
/// The argument as a tensor; undefined if it is something else.
at::Tensor tensor_of(const c10::IValue& value);
/// The same, and a number as an fp64 tensor without dimensions.
at::Tensor operand_of(const c10::IValue& value);
/// Every tensor among the arguments, lists opened.
std::vector<at::Tensor> tensors_in(const std::vector<c10::IValue>& arguments);

/// True if a logarithm is taken of a sum of the op's result (or of its exponential): log-space arithmetic by
/// hand.
bool goes_into_a_logarithm(const Case& c, std::int32_t op);

/// True if the op read an infinity.
bool reads_infinity(const OpValues& values);

/// Runs the op once more on these arguments, with every floating tensor and every dtype argument among them
/// changed to `precision` (fp32 or fp64; as_recorded: unchanged), outside the replayer. Returns what
/// OpValues::outputs holds for a recorded call, in that order; nothing if CallAgain refuses, or the op
/// returns no tensor. An in-place op changes nothing of the caller's.
std::optional<std::vector<at::Tensor>> evaluate_all(const OpRow& op,
                                                    const std::vector<c10::IValue>& arguments,
                                                    Precision precision);
/// The first of its results.
std::optional<at::Tensor> evaluate(const OpRow& op, const std::vector<c10::IValue>& arguments,
                                   Precision precision);

}  // namespace nanquest
