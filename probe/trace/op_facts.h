/// What schemas don't say of single operators: one table for recorder, replay and viewer.
///
/// Operators are named without overload ("aten::fill_"), arguments as in the schema. Pure functions.
#pragma once

#include <cstddef>
#include <string_view>

namespace nanquest {

/// What an operator does with the values of one argument.
struct ArgumentUse {
  bool read = true;      ///< its values go into what the operator computes
  bool written = false;  ///< its memory is written
};

/// One argument as its schema declares it.
struct DeclaredArgument {
  std::string_view name;
  std::size_t position = 0;
  bool mutated = false;  ///< its alias annotation says that it is written
  bool out = false;      ///< an out= argument
};

/// What `op` does with that argument: the schema's word, corrected by what its kernels are known to do. What
/// is overwritten whole (out=, fill_, copy_, what a gather receives), working memory that only a backward
/// operator can read and what only lends its shape (randn_like, the input in the derivative of a mean over
/// windows) are not read.
ArgumentUse argument_use(std::string_view op, const DeclaredArgument& argument);

/// True if `op` writes its first argument without reading it ("aten::fill_", "aten::copy_", …): what was
/// there before does no harm and need not be known.
bool overwrites_blindly(std::string_view op);

/// It tells an allocator something, and neither reads nor changes a value: no part of a computation.
bool is_for_the_allocator(std::string_view op);

/// True if `op` only changes what a tensor looks at, or what is kept of it ("aten::set_", "aten::detach_"):
/// whatever its schema says, no element is read or written.
bool changes_metadata_only(std::string_view op);

/// True if `op` hands out memory that nobody has written ("aten::empty", "aten::resize_", …).
bool returns_uninitialised(std::string_view op);

/// An operator of FSDP's that only copies, around a gather or a reduction: others than it have no kernel, but
/// replay knows what it does.
bool is_fsdp_copy(std::string_view op);

/// True if what `op` returns first is the part of its one written argument that it writes; the rest of that
/// belongs to others.
bool returns_what_it_wrote(std::string_view op);

/// True if the kernels of `op` needn't write all of what they return as number `output`: working memory that
/// only their backward operators know how to read. Its values mean nothing, and differ from run to run.
bool is_scratch(std::string_view op, std::size_t output);

/// True for an argument with which an operator that is tagged as drawing draws nothing if it is 0: the share
/// that attention drops.
bool draws_nothing_if_zero(std::string_view argument);

/// True unless output `output` of `op`, which draws random numbers, can be computed again from its arguments
/// and its other outputs: what native_dropout gives follows from its mask.
bool tells_what_was_drawn(std::string_view op, std::size_t output);

/// True if `op` is such a backward operator and `argument` (its name in the schema) that memory.
bool reads_scratch(std::string_view op, std::string_view argument);

}  // namespace nanquest
