/// values: small questions about tensors that causes ask; all of them copy to fp64 on the CPU.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "replay/cause/case.h"

namespace nanquest {

/// The format of a tensor's elements ("fp16", "bf16", …), "" for integers and bool.
std::string format_name(const at::Tensor& tensor);
/// Largest finite value of that format; nothing for integers and bool.
std::optional<double> format_max(const at::Tensor& tensor);
/// Smallest normal value of that format; nothing for integers and bool.
std::optional<double> format_tiny(const at::Tensor& tensor);

/// As fp64 (fp8 included); integers and bool convert too.
at::Tensor wide(const at::Tensor& tensor);
/// True where an element is NaN or infinite.
at::Tensor bad_mask(const at::Tensor& tensor);
/// Number of true elements.
std::int64_t count_true(const at::Tensor& mask);
bool all_finite(const at::Tensor& tensor);
/// Largest |x| of the finite elements, 0 if there is none.
double finite_amax(const at::Tensor& tensor);
/// `tensor` expanded to `shape`, or nothing if it does not broadcast.
std::optional<at::Tensor> broadcast(const at::Tensor& tensor, at::IntArrayRef shape);

/// Position of argument `name` in the op's schema; nothing if this LibTorch has no such op, or it no such
/// argument.
std::optional<std::size_t> argument_position(const OpRow& op, std::string_view name);
/// What `op` was given as its argument `name` in the run as recorded; None if there is no such argument.
c10::IValue argument(const Case& c, std::int32_t op, std::string_view name);
/// The tensor that an argument is; undefined if it is something else.
at::Tensor tensor_of(const c10::IValue& value);
/// The same, and a number as an fp64 tensor without dimensions.
at::Tensor operand_of(const c10::IValue& value);
/// Every tensor among the arguments, lists opened.
std::vector<at::Tensor> tensors_in(const std::vector<c10::IValue>& arguments);

/// True if the op read an infinity.
bool reads_infinity(const OpValues& values);

/// "1 element", "3 elements".
std::string count_text(std::int64_t n, const std::string& noun);
/// 123456.7 -> "1.23e+05", small whole numbers as they are.
std::string number_text(double value);

/// Runs the op once more on these arguments, with every floating tensor and every dtype argument among them
/// changed to `precision` (fp32 or fp64), outside the replayer. Nothing if the op has no such kernel or its
/// output isn't a tensor. Arguments are copied: an in-place op changes nothing of the caller's.
std::optional<at::Tensor> evaluate(const OpRow& op, const std::vector<c10::IValue>& arguments,
                                   Precision precision);

}  // namespace nanquest
