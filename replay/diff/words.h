/// words: parts of the sentences of a report. Private to replay/diff.
#pragma once

#include <string>
#include <vector>

#include "replay/diff/report.h"

namespace nanquest::diff {

/// Two digits: "0.35", "4.1e-07".
std::string number(double value);
/// "eps", or "scalar (the optimizer's eps)".
std::string number_name(const Finding& f);
/// "aten::mul in blocks.1.attention (forward, op 108 in A, 108 in B)".
std::string place(const Finding& f);
/// What an experiment showed: "with B's eps A gives B's value"; "" if there is nothing to say.
std::string tried(const Finding& f);

/// One line of a report: "apart", "0.65 of its size, …".
struct Line {
  std::string head, body;
};
/// The report for people; `full`: all findings and notes.
std::vector<Line> lines_of(const Report& r, bool full);

}  // namespace nanquest::diff
