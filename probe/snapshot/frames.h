/// Finds the program's own frame in a stack.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nanquest {

/// Whether a frame ("file:line function") is in an installed library, the interpreter, or the probe.
inline bool is_library_frame(std::string_view frame) {
  for (const std::string_view part :
       {"/site-packages/", "/dist-packages/", "/lib/python3", "/lib64/python3", "/attach/python/nanquest/"})
    if (frame.find(part) != std::string_view::npos) return true;
  return frame.empty() || frame.front() == '<';
}

/// The innermost frame of the program itself, which a person can change. If no frame is the program's, the
/// innermost of all; "" for an empty stack.
inline std::string program_frame(const std::vector<std::string>& stack) {
  for (const std::string& frame : stack)
    if (!is_library_frame(frame)) return frame;
  return stack.empty() ? "" : stack.front();
}

}  // namespace nanquest
