/// process_groups: text for a file that describes c10d's objects among the arguments of a collective.
#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <string>
#include <vector>

namespace nanquest {

/// "c10d::ReduceOp sum" or "c10d::ProcessGroup <name>", as collectives.h reads them; the value's type for
/// everything else. Calls no Python code: for a process group that a program defined itself only the type is
/// known. Throws only if memory runs out.
std::string words_for_object(const c10::IValue& value);

/// Whether the calling thread is one on which gloo runs collectives (by the name that c10d gives it; checked
/// once per thread). Its ops may appear to run in a backward pass, because the thread takes over its caller's
/// state.
bool is_thread_of_process_group() noexcept;

/// The global ranks of the members of the process group of that name, in the group's order; empty if there is
/// no such group or it does not provide them. Call it without locks: a backend may be written in Python.
/// Never throws.
std::vector<std::uint64_t> ranks_of_process_group(const std::string& name) noexcept;

}  // namespace nanquest
