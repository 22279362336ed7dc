/// Call stacks: gathered for every op (cheap), turned into words for a few (slow).
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace nanquest {

/// An unsymbolised stack of the calling thread; opaque. Shared, so that tables can copy it cheaply.
class Stack {
 public:
  /// Python frames in a Python process, otherwise C++ frames.
  static std::shared_ptr<Stack> gather();
  /// Whether gather() takes microseconds instead of a fraction of one, because C++ frames must be unwound.
  static bool costly();
  virtual ~Stack() = default;
  /// Python: "file:line function". C++: "program+0xoffset function", for addr2line. Innermost first, without
  /// frames of LibTorch and of the probe. Empty if nothing is known. Never throws.
  virtual std::vector<std::string> symbolise() const = 0;
};

}  // namespace nanquest
