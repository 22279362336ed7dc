/// VerdictPage: the answer to "what happened?", in the order a person asks. The window and --text show the
/// same page.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "viewer/model/session.h"

namespace nanquest::viewer {

/// One question and its answer.
struct Fact {
  std::string label;  ///< "What", "Where", "Why", "What to do", "How sure", "Proven by"
  std::string text;
};

struct VerdictPage {
  enum class State { nothing_open, not_replayed, harmless, unseen, diagnosed };
  State state = State::nothing_open;
  std::string headline;        ///< one sentence
  std::optional<Label> cause;  ///< nothing before a replay
  double confidence = 0;       ///< 0 … 1, meaningful when diagnosed
  bool fix_verified = false;
  bool bit_exact = false;
  std::vector<Fact> facts;
  std::string command;  ///< what to run next; "" if nothing
  PrecisionInfo precision;
  std::vector<Evidence> evidence;
  std::vector<Counterfactual> trials;
  std::vector<std::string> not_tested;
};

/// The page of the open incident.
VerdictPage verdict_page(const Session& session);

}  // namespace nanquest::viewer
