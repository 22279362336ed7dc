/// rank_reason: the first op whose value the ranks' values do not make up, and what can be said of it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "replay/diff/made_up.h"
#include "replay/diff/reason.h"

namespace nanquest::diff {

inline constexpr const char* kNotMadeUp = "what the ranks have does not make up the value of one rank";

struct NotMadeUp {
  WrittenPlace place;         ///< in A
  std::string text;           ///< what is different there
  bool inputs_agree = false;  ///< the ranks' inputs make up A's
  bool is_found = false;      ///< the text says why: a sum that was left out, random numbers
};

/// `made`: of A's values; `ends`: what the steps leave. Looked for after the last end that agrees: nothing
/// before it matters. Nothing: there is no such op.
std::optional<NotMadeUp> first_not_made_up(const Steps& steps, const std::map<WrittenPlace, Made>& made,
                                           const std::vector<Group>& ends);

/// "with the gradients of the ranks weighted 0.25 and 0.75 in place of 0.5 each …".
std::string words_of_shares(const std::vector<double>& of_rank);

}  // namespace nanquest::diff
