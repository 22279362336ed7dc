/// repro_tensors: tensors taken apart, so that a program can make them again: values and layout.
/// Private to replay/report.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace nanquest {

/// The decimal number with the fewest digits, as "%g" writes it, of which `same` says that it is good enough;
/// always with a point or an exponent.
std::string shortest(double value, const std::function<bool(double)>& same);

/// The elements of a contiguous tensor that is not complex, "1.5, -0.0", each as `text` spells a double;
/// nothing if converting doubles to the tensor's type gives other bits (payloads of NaN, integers beyond
/// 2^53).
std::optional<std::string> numbers_of(const at::Tensor& tensor,
                                      const std::function<std::string(double)>& text);

/// The bytes of a contiguous tensor in hexadecimal digits.
std::string hex_of(const at::Tensor& tensor);

/// The tensor's memory as it is, the flags that say "read me conjugated, negated" left out.
at::Tensor without_flags(at::Tensor tensor);

/// Where the elements of a tensor lie.
struct MemoryLayout {
  enum class Kind {
    plain,        ///< one after the other
    strided,      ///< apart or in another order, each at a place of its own: `strides`
    overlapping,  ///< several at one place, other than by expanding: `elements` is all memory from the first
                  ///< to the last
  };
  Kind kind = Kind::plain;
  at::Tensor elements;  ///< what has to be written down; expanded dimensions are left out
  std::vector<std::int64_t> strides;
  bool expanded = false;  ///< to be expanded to its sizes at last
};
MemoryLayout layout_of(const at::Tensor& tensor);

/// Tensors too large for the program, by name; their bytes become one safetensors file.
class TensorStore {
 public:
  /// Keeps `tensor` (contiguous, on the CPU) under `name`; nothing new if the name is there already.
  void add(const std::string& name, const at::Tensor& tensor);
  /// The file: 8 bytes length of the header, the header in JSON, the bytes (safetensors format); "" if empty.
  std::string file() const;

 private:
  std::vector<std::pair<std::string, at::Tensor>> tensors_;
};

}  // namespace nanquest
