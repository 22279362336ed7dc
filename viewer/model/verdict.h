/// The verdict file that nanquest-replay leaves beside a snapshot (design §9), as the viewer needs it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "probe/base/result.h"

namespace nanquest::viewer {

struct VerdictEvidence {
  std::string name, value, limit;
  std::vector<double> series;  ///< the numbers behind it, oldest first; may be empty
};

struct VerdictTrial {
  std::string change, kind, scope, result;
  std::int64_t steps = 1;
};

struct VerdictFix {
  std::string change, advice, scope;
  bool verified = false, placebo_failed = false, minimal = false;
};

struct Verdict {
  std::int64_t step = 0, rank = 0;
  bool found = true;  ///< false: the step holds nothing harmful
  bool bit_exact = false;
  std::string basis;
  std::int64_t outputs_compared = 0, mismatched = 0, opaque_ops = 0;
  std::optional<std::int64_t> first_mismatch;
  std::string phase, origin, cause = "UNKNOWN", explanation, advice, source;
  double confidence = 0;                        ///< 0 … 1
  std::string op, node, module, tensor, value;  ///< of the culprit
  std::int64_t index = -1;
  std::uint64_t count = 0;
  std::vector<std::int64_t> first;
  std::vector<std::string> stack;
  std::string fp32, fp64, precision;
  std::vector<VerdictEvidence> evidence;
  std::vector<VerdictTrial> trials;
  std::optional<VerdictFix> fix;
  std::vector<std::int64_t> poison;
  std::vector<std::string> poison_ids;
  std::int64_t batch = 0;
  std::vector<std::string> not_tested;
};

/// Parses the JSON text. Unknown fields are ignored, missing or ill-typed ones keep their default; `bad_file`
/// if it is no verdict at all or of a newer version.
Result<Verdict> parse_verdict(const std::string& json);

/// Reads the file at `path`. `bad_file` names the path.
Result<Verdict> read_verdict(const std::string& path);

/// A cause's label in words: "FP16_OVERFLOW" -> "a value beyond the number format's range".
std::string cause_words(const std::string& label);

}  // namespace nanquest::viewer
