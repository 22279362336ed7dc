/// StepDiff: two recorded steps compared, as `nanquest diff A B --json --full` wrote it: where they part
/// beyond rounding, and why. All sentences are those of the file.
///
///     Result<StepDiff> diff = read_step_diff("diff.json");
///     PanelPage page = page_of(*diff, whole);
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "probe/base/result.h"
#include "viewer/model/page.h"

namespace nanquest::viewer {

/// Relative distances; NaN where the file has none.
struct DiffDistance {
  double found = std::numeric_limits<double>::quiet_NaN();     ///< between A and B
  double rounding = std::numeric_limits<double>::quiet_NaN();  ///< that a change of the last bit makes
};

/// What of an op the two steps make.
enum class OpState : std::uint8_t { equal, rounding, beyond, only_a, only_b, not_compared };

struct StepDiff {
  struct Line {
    std::string head, text;
  };
  struct Finding {
    std::string kind, op, module, phase, parameter, name, in_a, in_b, setting, text, tried;
    std::optional<std::int64_t> op_a, op_b, follows;
    std::int64_t places = 0;
    DiffDistance distance;
  };
  struct End {
    std::string name, first;
    std::int64_t compared = 0, differ = 0;
    DiffDistance distance;
  };
  struct Operation {
    std::optional<std::int64_t> a, b;
    std::string op, module, phase;
    DiffDistance distance;
    bool beyond = false;

    OpState state() const;
  };

  std::string a, b;  ///< the two files
  std::int64_t step_a = 0, step_b = 0;
  bool alike = false, same_program = true;
  std::vector<Line> lines;
  std::vector<Finding> findings;
  std::vector<End> ends;
  std::vector<Operation> operations;  ///< empty if the file was written without --full

  /// "A and B differ beyond rounding".
  std::string headline() const;
  /// The row of `operations` that is beyond rounding first; its size if none is.
  std::size_t first_beyond() const;
};

/// "beyond rounding", "only in A".
const char* state_words(OpState state);
/// "2.9e-07", "0", "" for NaN.
std::string distance_text(double distance);

/// True if the file begins as such a document: it is not read whole.
bool is_step_diff(const std::string& path);
/// `bad_file` if it is none, of a newer version, or damaged.
Result<StepDiff> read_step_diff(const std::string& path);

/// Operations are listed around the first beyond rounding, or, if `whole`, up to `most` of them.
PanelPage page_of(const StepDiff& diff, bool whole, std::size_t most);
/// Its tables: the differences; the step's end; operations [first, end).
PageTable difference_table(const StepDiff& diff);
PageTable end_table(const StepDiff& diff);
PageTable operation_table(const StepDiff& diff, std::size_t first, std::size_t end);

}  // namespace nanquest::viewer
