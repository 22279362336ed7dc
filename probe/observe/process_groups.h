/// process_groups: what c10d's objects among the arguments of a collective are, in words that a file can
/// hold.
#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <string>
#include <vector>

namespace nanquest {

/// "c10d::ReduceOp sum" or "c10d::ProcessGroup <name>", as collectives.h reads them; the value's type for
/// everything else. Asks no code of Python: of a process group that a program defined itself only the type is
/// known. Never throws but for lack of memory.
std::string words_for_object(const c10::IValue& value);

/// Whether the calling thread is one on which gloo does what collectives were asked for (by the name that
/// c10d gives it; asked once a thread). It may say that it works for a backward pass, as it is told whose
/// work it is.
bool is_thread_of_process_group() noexcept;

/// The global ranks of the members of the process group of that name, in the group's order; empty if there is
/// no such group or it doesn't say. Call it without locks: a backend may be written in Python. Never throws.
std::vector<std::uint64_t> ranks_of_process_group(const std::string& name) noexcept;

}  // namespace nanquest
