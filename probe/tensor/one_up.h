/// The same op one precision up, in the next format with a wider range: fp16 and fp8 in fp32, fp32 and bf16
/// (which has the range of fp32) in fp64. The result distinguishes a range overflow of the format from a
/// mathematical singularity.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <optional>
#include <vector>

namespace nanquest {

/// The result of an op on the same inputs one precision up.
enum class OneUp {
  finite,      ///< the values are representable there: range overflow of the format
  non_finite,  ///< a singular point, a domain fault or an intended infinity
  unknown,     ///< could not be computed (random, fp64 already, no kernel)
};

/// Results of an op: returned tensors and, after them, written arguments, each in schema order.
struct OpResults {
  std::vector<at::Tensor> returned, written;
};

/// The floating-point formats that an op reads, or casts to.
class FormatsUsed {
 public:
  FormatsUsed() = default;
  FormatsUsed(const c10::FunctionSchema& schema, const std::vector<c10::IValue>& inputs);
  void add(at::ScalarType type);
  /// Whether a format shorter than fp32 is among them.
  bool reduced() const { return narrow_ || brain_; }
  /// The format one precision up. Nothing if there is no floating-point format, or only fp64.
  std::optional<at::ScalarType> one_up() const;

 private:
  bool narrow_ = false;  ///< fp16, fp8
  bool brain_ = false;   ///< bf16
  bool single_ = false;
};

/// The arguments with every floating-point tensor and ScalarType raised to `to`. Everything that the op may
/// write is a copy. `raise` may return another tensor to replace one of them (undefined: none); it is raised
/// after that.
std::vector<c10::IValue> raised(const c10::FunctionSchema& schema, const std::vector<bool>& argument_written,
                                const std::vector<c10::IValue>& inputs, at::ScalarType to,
                                const std::function<at::Tensor(const at::Tensor&)>& instead = {});

/// Runs the op on arguments that `raised` made, without autograd and autocast. Nothing if that is not
/// possible (no kernel for the type, out of memory). Never throws. For ops that draw no random numbers.
std::optional<OpResults> run_raised(const c10::OperatorHandle& op, const std::vector<bool>& argument_written,
                                    std::vector<c10::IValue> arguments);

/// Whether a value in `results` is NaN or Inf.
OneUp one_up_of(const OpResults& results);

}  // namespace nanquest
