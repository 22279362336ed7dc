/// repro_values: arguments of an op written down as Python and as C++ source. Private to replay/report.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <optional>
#include <string>
#include <vector>

namespace nanquest {

inline constexpr std::int64_t kInlineElements = 64;

/// Collects tensors too large for the script; their bytes become one safetensors file.
class TensorStore {
 public:
  /// Keeps `tensor` (contiguous, CPU) and returns its name in the file.
  std::string add(const at::Tensor& tensor);
  /// Offset of a kept tensor's bytes in the file, known once all are added.
  std::size_t offset(const std::string& name) const;
  /// The file: 8 bytes length of the header, the header in JSON, the bytes (safetensors format).
  std::string file() const;

 private:
  std::string head() const;
  std::vector<std::pair<std::string, at::Tensor>> tensors_;
};

/// One argument as a Python expression; nothing if it can't be written down.
std::optional<std::string> python_value(const c10::IValue& value, const c10::Argument& argument,
                                        TensorStore& store);

/// One argument as a C++ expression giving a c10::IValue; nothing if it can't be written down. `store` must
/// hold the same tensors already (python_value was called first); `next` counts them.
std::optional<std::string> cpp_value(const c10::IValue& value, const TensorStore& store, int& next);

}  // namespace nanquest
