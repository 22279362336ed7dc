/// json: the verdict file "nanquest.verdict": the contract that other programs read.
///
///     Status s = write_file_atomically("step-00000131.r0.json", to_json(verdict));
///     Result<Verdict> v = read_verdict("step-00000131.r0.json");
///
/// A new field may be added at any time: readers ignore what they don't know. A change of meaning increases
/// kVerdictVersion, and older readers then refuse the file.
#pragma once

#include <string>
#include <vector>

#include "probe/base/result.h"
#include "replay/verdict/verdict.h"

namespace nanquest {

/// Version written. Version 1, which has no blame, claims and root, is read as well.
inline constexpr std::int64_t kVerdictVersion = 2;

/// The file's content, indented, ends with a newline. Non-finite numbers in series become null, bytes that
/// are no UTF-8 become U+FFFD, the confidence is rounded to hundredths.
std::string to_json(const Verdict& verdict);

/// Reads what `to_json` wrote. Missing fields keep their defaults. `bad_file` if it is no verdict, of another
/// version, or a field has an invalid value ("verdict: culprit.index: …").
Result<Verdict> verdict_from_json(const std::string& text);

/// The same from a file; the error names its path.
Result<Verdict> read_verdict(const std::string& path);

/// One field in which two verdicts differ.
struct Difference {
  std::string field;          ///< JSON pointer: "/culprit/op"
  std::string first, second;  ///< as JSON; "" where the verdict has no such field
};

/// All fields of the file in which two verdicts differ, in the file's order.
std::vector<Difference> differences(const Verdict& first, const Verdict& second);

}  // namespace nanquest
