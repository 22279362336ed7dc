/// repro_tensors: tensors taken apart, so that a program can make them again: values and strides. Private to
/// replay/report.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace nanquest {

/// The decimal number with the fewest digits, as "%g" writes it, for which `same` is true; always with a
/// point or an exponent.
std::string shortest(double value, const std::function<bool(double)>& same);

/// The elements of a contiguous tensor that is not complex, "1.5, -0.0", each as `text` writes a double;
/// nothing if converting doubles to the tensor's type gives other bits (payloads of NaN, integers beyond
/// 2^53).
std::optional<std::string> numbers_of(const at::Tensor& tensor,
                                      const std::function<std::string(double)>& text);

/// The bytes of a contiguous tensor in hexadecimal digits.
std::string hex_of(const at::Tensor& tensor);

/// The tensor's memory as it is, without the flags "conjugated" and "negated".
at::Tensor without_flags(at::Tensor tensor);

/// How the elements of a tensor are placed in memory.
struct MemoryLayout {
  enum class Kind {
    plain,        ///< one after the other
    strided,      ///< with gaps or in another order, each at a place of its own: `strides`
    overlapping,  ///< several at one place, apart from expanding: `elements` is all memory from the first to
                  ///< the last
  };
  Kind kind = Kind::plain;
  at::Tensor elements;  ///< what has to be written; without expanded dimensions
  std::vector<std::int64_t> strides;
  bool expanded = false;  ///< whether to expand it to its sizes at the end
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
