/// Tensors by name, in the order they were named first.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <unordered_map>

#include "probe/capture/record.h"

namespace nanquest::attach {

class NamedList {
 public:
  /// A name given again means the new tensor: programs replace buffers and states.
  void put(const std::string& name, const at::Tensor& tensor);
  /// A name given again gets a number; returns the name used.
  std::string add(const std::string& name, const at::Tensor& tensor);
  void clear();

  const NamedTensors& all() const { return tensors_; }

 private:
  NamedTensors tensors_;
  std::unordered_map<std::string, std::size_t> index_;
};

}  // namespace nanquest::attach
