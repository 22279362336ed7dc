/// Call stacks: gathered for every op (cheap), turned into words for the few that matter (slow).
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace nanquest {

/// An unsymbolised stack of the calling thread; opaque. Shared so that tables may copy it.
class Stack {
 public:
  /// Python frames in a Python process, otherwise C++ frames.
  static std::shared_ptr<Stack> gather();
  /// gather() costs microseconds, not a fraction of one: C++ frames have to be unwound.
  static bool costly();
  virtual ~Stack() = default;
  /// Python: "file:line function"; C++: "program+0xoffset function" for addr2line; innermost first, frames of
  /// LibTorch and of the probe left out. Empty if nothing is known. Never throws.
  virtual std::vector<std::string> symbolise() const = 0;
};

}  // namespace nanquest
