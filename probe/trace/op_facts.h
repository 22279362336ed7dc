/// Facts about single operators that are not in their schemas: one table for recorder, replay and viewer.
///
/// Operators are named without overload ("aten::fill_"), arguments as in the schema. Pure functions.
#pragma once

#include <cstddef>
#include <string_view>

namespace nanquest {

/// What an operator does with the values of one argument.
struct ArgumentUse {
  bool read = true;      ///< the operator's result depends on its values
  bool written = false;  ///< its memory is written
};

/// One argument as its schema declares it.
struct DeclaredArgument {
  std::string_view name;
  std::size_t position = 0;
  bool mutated = false;  ///< its alias annotation says that it is written
  bool out = false;      ///< an out= argument
};

/// What `op` does with that argument: the schema, corrected by known facts about kernels. Not read are:
/// memory that is overwritten completely (out=, fill_, copy_, what a gather receives), working memory that
/// only a backward operator can read, and arguments that give only their shape (randn_like, the input in the
/// derivative of a mean over windows).
ArgumentUse argument_use(std::string_view op, const DeclaredArgument& argument);

/// True if `op` writes its first argument without reading it ("aten::fill_", "aten::copy_", …): the previous
/// values do no harm and need not be known.
bool overwrites_blindly(std::string_view op);

/// It only informs an allocator and neither reads nor changes a value: not part of a computation.
bool is_for_the_allocator(std::string_view op);

/// True if `op` only changes a tensor's metadata ("aten::set_", "aten::detach_"): no element is read or
/// written, whatever its schema says.
bool changes_metadata_only(std::string_view op);

/// True if `op` returns uninitialised memory ("aten::empty", "aten::resize_", …).
bool returns_uninitialised(std::string_view op);

/// An operator of FSDP that only copies, before or after a gather or a reduction. It has no kernel outside
/// FSDP, but replay knows what it does.
bool is_fsdp_copy(std::string_view op);

/// True if the first result of `op` is the part of its one written argument that it writes; it does not write
/// the rest.
bool returns_what_it_wrote(std::string_view op);

/// True if the kernels of `op` need not write all of result number `output`: working memory that only their
/// backward operators can read. Its values mean nothing and differ from run to run.
bool is_scratch(std::string_view op, std::size_t output);

/// True for an argument that switches drawing off if it is 0, for an operator that is tagged as drawing: the
/// dropout probability of attention.
bool draws_nothing_if_zero(std::string_view argument);

/// True unless result `output` of `op`, which draws random numbers, can be computed from its arguments and
/// its other results: the result of native_dropout follows from its mask.
bool tells_what_was_drawn(std::string_view op, std::size_t output);

/// True if `op` is such a backward operator and `argument` (its name in the schema) is that memory.
bool reads_scratch(std::string_view op, std::string_view argument);

}  // namespace nanquest
