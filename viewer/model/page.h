/// VerdictPage: the answer to "what happened?", in the order a person asks. The window and --text show the
/// same page.
#pragma once

#include <string>
#include <vector>

#include "viewer/model/session.h"

namespace nanquest::viewer {

/// One question and its answer.
struct Fact {
  std::string label;  ///< "What", "Where", "Why", "What to do", "How sure", "Proven by"
  std::string text;
};

/// One replay with a change, ready to be shown.
struct Trial {
  std::string change, kind, result;
  bool finite = false, placebo = false;
};

struct VerdictPage {
  enum class State { nothing_open, not_replayed, harmless, diagnosed };
  State state = State::nothing_open;
  std::string headline;  ///< one sentence
  std::string cause;     ///< label, "" before a replay
  std::string cause_in_words;
  double confidence = 0;  ///< 0 … 1, meaningful when diagnosed
  bool fix_verified = false;
  bool bit_exact = false;
  std::vector<Fact> facts;
  std::string command;     ///< what to run next; "" if nothing
  std::string fp32, fp64;  ///< "finite", "non_finite", "not_run"
  std::vector<VerdictEvidence> evidence;
  std::vector<Trial> trials;
  std::vector<std::string> not_tested;
};

/// The page of the open incident.
VerdictPage verdict_page(const Session& session);

}  // namespace nanquest::viewer
