/// injector: puts the damage of `LoopConfig::injections` into a step, for tests of the harness.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <vector>

#include "trainer/loop/config.h"
#include "trainer/task/named_tensors.h"

namespace nanquest::trainer {

class Injector {
 public:
  /// `injections` must outlive it.
  Injector(const std::vector<Injection>& injections, std::int32_t rank)
      : injections_(injections), rank_(rank) {}

  /// `loss`, or NaN if batch number `batch`, computed in `format`, is to have one.
  at::Tensor into_loss(const at::Tensor& loss, std::int64_t batch, at::ScalarType format) const;
  /// Puts an infinity into the first gradient, if this batch is to have one.
  void into_gradients(const NamedTensors& parameters, std::int64_t batch, at::ScalarType format) const;

 private:
  bool active(Injection::Kind kind, std::int64_t batch, at::ScalarType format) const;

  const std::vector<Injection>& injections_;
  std::int32_t rank_;
};

}  // namespace nanquest::trainer
