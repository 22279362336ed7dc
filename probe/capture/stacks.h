/// Call stacks: gathered for every op (cheap), turned into words for the few that matter (dear).
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace nanquest {

/// An unsymbolised stack of the calling thread; opaque. Shared so that tables may copy it.
class Stack {
 public:
  /// C++ frames, and Python's if this process runs Python and it is safe to ask.
  static std::shared_ptr<Stack> gather();
  virtual ~Stack() = default;
  /// "file:line function" (or "program+0xoffset function" without line tables), innermost first, frames of LibTorch and of the probe left out. Takes up
  /// to some 100 ms the first time. Empty if nothing is known. Never throws.
  virtual std::vector<std::string> symbolise() const = 0;
};

}  // namespace nanquest
