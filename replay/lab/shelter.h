/// shelter: a kernel that crashes on a changed step would end the whole diagnosis. So the work is done in a
/// process of its own, and a crash becomes a result.
#pragma once

#include <functional>
#include <string>

namespace nanquest {

/// Tells a shelter what is being done now; a text of more than 200 characters is cut.
using Doing = std::function<void(const std::string& what)>;

/// Runs `work` in a forked process and returns its exit code. If a fault ended it (segmentation fault, bus
/// error, illegal instruction, arithmetic, abort), `instead` is run in the same way with the fault and what
/// was being done: "Segmentation fault while: which samples are needed". If something else ended it (out of
/// memory, a signal from outside), returns 128 + that signal; without a process, the result of `work` run
/// here. Ctrl-C and similar signals are passed on to the work. Must be called before there are other threads;
/// stdout and stderr are flushed on both sides.
int sheltered(const std::function<int(const Doing&)>& work,
              const std::function<int(const std::string& crash)>& instead);

/// True for the result of `sheltered` if a fault ended `instead` as well.
bool is_crash(int code);

}  // namespace nanquest
