/// shelter: a kernel that crashes on a changed step would take the whole diagnosis along. The work is done in
/// a process of its own, and its crash is an answer like others.
#pragma once

#include <functional>
#include <string>

namespace nanquest {

/// Tells a shelter what is being done now; a text of more than 200 characters is cut.
using Doing = std::function<void(const std::string& what)>;

/// Runs `work` in a forked process and returns its exit code. Where a fault of the machine ended it
/// (segmentation fault, bus error, illegal instruction, arithmetic, abort), `instead` is run in the same way
/// and told which, and what was being done: "Segmentation fault while: which samples are needed". Where
/// something else ended it (out of memory, a signal from outside), or no process can be had, the return is
/// 128 + that signal, or what `work` gives here. Ctrl-C and the like are passed on to the work. To be called
/// before there are other threads; stdout and stderr are flushed on both sides.
int sheltered(const std::function<int(const Doing&)>& work,
              const std::function<int(const std::string& crash)>& instead);

/// True for what `sheltered` returns where `instead` was ended by a fault of the machine as well.
bool is_crash(int code);

}  // namespace nanquest
