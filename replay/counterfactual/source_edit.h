/// SourceEdit: a change that was tried on a step, as it would be written into the program.
///
///     sqrt(d)    ->  sqrt(d.clamp(min=1e-08))
///     SourceEdit{.op = "sqrt", .row = 12, .with = "{}.clamp(min=1e-08)"}
///
///     x + 1e-12  ->  x + 1e-05
///     SourceEdit{.op = "add", .row = 7, .number = 1e-12, .with = "1e-05"}
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace nanquest {

struct SourceEdit {
  std::string op;                     ///< its plain_name
  std::int32_t row = -1;              ///< of the trace
  std::size_t position = 0;           ///< of the changed argument in the op's schema
  std::optional<double> number = {};  ///< the literal to replace; nothing: the argument's expression
  std::string with;                   ///< what takes its place; "{}" is the expression as it stands
};

}  // namespace nanquest
