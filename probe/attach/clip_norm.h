/// ClipNorm: the norm of a step's gradients, as the program's clipping found it. Of several norms it is the
/// largest: bad if one of them is, and no figure of the series.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace nanquest::attach {

class ClipNorm {
 public:
  /// Clipping found `norm`, one number or several; it may lie on a device. Returns whether it is NaN or Inf,
  /// as far as that is known without waiting for a device.
  bool found(const at::Tensor& norm);
  /// It was judged together with the gradients.
  void judged(bool bad) { bad_ = bad; }
  /// Whether it was NaN or Inf in this step.
  bool bad() const { return bad_; }
  /// Whether it was one number when it was found last.
  bool one() const { return count_ == 1; }
  /// The number, if it is one and on the CPU; else NaN.
  double figure() const;
  /// What is to be read from a device; undefined if there is nothing.
  at::Tensor on_device() const { return norm_.defined() && !norm_.is_cpu() ? norm_ : at::Tensor(); }
  /// A look at the gradients has taken it along.
  void taken() { norm_.reset(); }
  /// Another step begins.
  void clear() {
    norm_.reset();
    bad_ = false;
  }

 private:
  at::Tensor norm_;
  std::int64_t count_ = 1;
  bool bad_ = false;
};

}  // namespace nanquest::attach
