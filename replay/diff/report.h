/// report: what a comparison of two recorded steps found. Plain data, with its text and its JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace nanquest::diff {

/// How a difference came in. `batch`, `state`: values from outside the step differ. `argument`: a number that
/// the program passed. `random`: other random numbers. `operations`: ops that only one has. `input`: the same
/// op computes from something else. `format`: another number format. `ranks`: what a collective got from
/// other ranks, or ranks' values that do not make up that of one. `region`: the values part inside a compiled
/// region. `value`: none of these was found.
enum class Kind : std::uint8_t {
  batch,
  state,
  argument,
  random,
  operations,
  input,
  format,
  ranks,
  region,
  value
};

/// "batch", "state", …
std::string_view word(Kind kind);

/// A distance, and what a change of the last bit makes of the same value; both relative.
struct Distance {
  double found = 0, rounding = 0;
};

struct Finding {
  Kind kind = Kind::value;
  std::string op, module, phase;  ///< of the first op beyond rounding; "" for batch and state
  std::string parameter;          ///< that an op of the optimizer updates, "" if not known
  std::int32_t a = -1, b = -1;    ///< its numbers in both steps, -1: none
  std::string name;               ///< argument, or the first value that differs
  std::string in_a, in_b;         ///< what each has there
  std::string setting;            ///< of the optimizer, if `name` is one: "eps"; "" if not known
  std::int64_t places = 0;        ///< so many ops (or values) differ in this way
  std::int32_t follows = -1;      ///< the finding of whose op this op is the derivative; -1: of none
  std::vector<std::string> only_a, only_b;  ///< `operations`: "aten::addmm in blocks.1 (op 34)"
  Distance distance;
  bool inputs_agree = false;
  /// A, given what B has there, gives B's value there, within rounding. Only then is the kind shown.
  bool shown = false;
  std::string how;  ///< of `ranks`, or where A is the step of several: what an experiment showed; "": nothing
  /// With the operations of "A", "B" or "both" in this format ("fp32") both give the same value; "": not so.
  std::string widened, in_format;
};

/// The end of the step: how many of a group of values are beyond rounding.
struct Group {
  std::string name;  ///< "loss", "gradients", "updated weights"
  std::int64_t compared = 0, differ = 0;
  std::string first;  ///< the first that differs
  Distance distance;
};

/// Matched operations whose results have different number formats.
struct Formats {
  std::int64_t places = 0;
  std::string first;       ///< "aten::addmm in blocks.1 (op 34)", of A
  std::string in_a, in_b;  ///< "Float", "BFloat16"
};

/// Both steps run in fp64, where formats and the order of sums make no difference.
struct InFp64 {
  std::string why_not;  ///< "" if it was tried
  bool alike = false;
  Finding where;        ///< the first difference there, if they are not
  bool hidden = false;  ///< the findings are those in fp64: rounding in the recorded formats hides them
};

/// An op of A, of B, or of both, with what it made in A and in B as recorded, before anything was put into A.
struct ComparedOp {
  std::int32_t a = -1, b = -1;  ///< its numbers in both steps, -1: that step does not have it
  std::string op, module, phase;
  std::optional<Distance>
      distance;         ///< of the value that is farthest apart; none: it writes nothing comparable
  bool beyond = false;  ///< a value is beyond rounding
};

/// Two runs beside the step that was compared.
struct Runs {
  std::int32_t rank = 0;
  std::vector<std::int64_t> steps;             ///< that both have files of, in order; the last was compared
  std::optional<std::int64_t> differs_before;  ///< the first of them that began with another state
  std::string parameter, buffer, optimizer;    ///< the first of each that differs there; "": none
  std::int64_t equal_losses = 0;               ///< steps of both series, up to the first that differs
  std::optional<std::int64_t> loss_step;       ///< the first whose loss differs in a bit
  double loss_a = 0, loss_b = 0;
  std::vector<std::int32_t> alike, differ;  ///< ranks that were compared, each with its own
};

/// One of the steps ran on one rank, the other on these; `a_is_many`: A did.
struct Ranks {
  std::vector<std::int32_t> many;
  bool a_is_many = false;
};

struct Report {
  std::string file_a, file_b;
  std::int64_t step_a = 0, step_b = 0;
  std::int64_t ops_a = 0, ops_b = 0, in_common = 0;
  double share = 0;               ///< of ops in common: 0 to 1
  bool same_program = true;       ///< false: too little in common to be compared; there are no findings
  std::int64_t equal_pairs = 0;   ///< pairs up to the first finding that are within rounding
  std::vector<Finding> findings;  ///< in the order in which the step meets them
  bool complete = false;    ///< with all that was put into A, all that was compared is B's within rounding
  std::vector<Group> ends;  ///< as recorded, without changes
  std::vector<ComparedOp>
      operations;            ///< all ops of both, in the order of A; those of B alone before their next
  std::optional<Runs> runs;  ///< if run directories were compared
  std::optional<Ranks>
      ranks;  ///< if the values of several ranks were put together; ops are those of the first
  std::optional<Formats> formats;
  std::optional<InFp64> in_fp64;  ///< if formats differ, or no number of the program explains the difference
  std::vector<std::string>
      notes;  ///< settings that differ without an effect beyond rounding; parameters of one
  bool alike() const { return same_program && findings.empty(); }
};

/// True if both are the same difference at another place: the same kind and name, at the same operator, with
/// the same operators that only one has.
bool is_same(const Finding& a, const Finding& b);

/// What differs, in one sentence.
std::string sentence(const Finding& f);
/// Ten lines for people; `full`: all findings and notes.
std::string to_text(const Report& report, bool full);
/// The same and all findings and notes, as one HTML file that needs no other.
std::string to_html(const Report& report);
/// The document "nanquest.diff", version 1 (docs/diff.md); `full`: with all operations.
std::string to_json(const Report& report, bool full);

}  // namespace nanquest::diff
