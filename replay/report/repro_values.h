/// repro_values: arguments of an op written as source, in Python and in C++ alike. Private to replay/report.
///
/// The same code writes both: only the syntax differs (Language). The functions that the text calls
/// (`numbers`, `bits`, `stored`, `strided`) are in the fixed part of both programs (repro_python.cpp,
/// repro_cpp.cpp).
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <optional>
#include <string>

#include "replay/report/repro_memory.h"
#include "replay/report/repro_tensors.h"

namespace nanquest {

inline constexpr std::int64_t kInlineElements = 64;

/// How a programming language writes constants.
struct Language {
  const char *none, *no, *yes, *nan, *infinity, *device;
  const char *open, *close;  ///< of a shape, and of the elements of a list
  const char* space;         ///< of functions: "torch." and "at::"
  bool python;
  /// "torch.float16", "at::kHalf". The type must be one that snapshots know.
  std::string type(at::ScalarType type) const;
};
extern const Language kPython, kCpp;

/// Writes values in one language.
class ValueText {
 public:
  ValueText(const Language& language, TensorStore& store, const SharedMemories& shared)
      : is_(language), store_(store), shared_(shared) {}

  /// One argument as an expression; in C++ one that makes a c10::IValue. Nothing if it can't be written.
  /// Tensors that are too large for the program are stored as `name`.
  std::optional<std::string> argument(const c10::IValue& value, const c10::Argument& argument,
                                      const std::string& name);
  /// A tensor with its strides, bit for bit.
  std::optional<std::string> tensor(const at::Tensor& tensor, const std::string& name);
  /// One value after the other: "2, 3".
  static std::string joined(at::IntArrayRef values);

 private:
  std::optional<std::string> value(const c10::IValue& value, const std::string& type,
                                   const std::string& name);
  std::optional<std::string> list(const c10::IValue& value, const std::string& type, const std::string& name);
  std::optional<std::string> integer(std::int64_t value, const std::string& type) const;
  std::optional<std::string> contiguous(const at::Tensor& tensor, const std::string& name);
  std::string real(double value) const;
  std::string shape(at::IntArrayRef values) const { return is_.open + joined(values) + is_.close; }

  const Language& is_;
  TensorStore& store_;
  const SharedMemories& shared_;
};

}  // namespace nanquest
