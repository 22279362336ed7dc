/// VerdictPage: the answer to "what happened?", in the order a person asks. The window and --text show the
/// same page: its facts, then its tables.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "viewer/model/session.h"

namespace nanquest::viewer {

/// What a mark beside a line says. `verified` stands on a fix that was tried, whose placebo failed and that
/// nothing smaller replaces; on nothing else.
enum class Sign : std::uint8_t { none, verified, finite, non_finite, failed, caution };

/// One question and its answer.
struct Fact {
  std::string label;  ///< "What", "Where", "Why", "Fix", "Advice", "Blame", "How sure", "Proven by", …
  std::string text;
  Sign sign = Sign::none;
};

struct VerdictPage {
  enum class State { nothing_open, not_replayed, harmless, unseen, diagnosed };
  State state = State::nothing_open;
  std::string headline;        ///< one sentence
  std::optional<Label> cause;  ///< nothing before a replay
  double confidence = 0;       ///< 0 … 1, meaningful when diagnosed
  bool bit_exact = false;
  std::vector<Fact> facts;
  std::string command;  ///< what to run next; "" if nothing
  PrecisionInfo precision;
  std::optional<Fix> fix;
  std::vector<Claim> claims;  ///< every cause that was heard
  std::vector<Evidence> evidence;
  std::vector<Counterfactual> trials;  ///< placebos among them
  std::vector<std::string> not_tested;

  bool fix_verified() const { return fix && fix->verified; }
};

/// The page of the open incident.
VerdictPage verdict_page(const Session& session);

/// What stands below the facts: rows of words, and a mark at the head of a row.
struct PageTable {
  enum class Kind : std::uint8_t { claims, evidence, tried, placebos, open };
  struct Row {
    std::vector<std::string> cells;
    Sign sign = Sign::none;
  };
  Kind kind = Kind::claims;
  std::string title;
  std::vector<std::string> columns;
  std::vector<Row> rows;
};

/// Claims, evidence, what was tried, placebos and what is open; those that have rows, in this order.
std::vector<PageTable> verdict_tables(const VerdictPage& page);

}  // namespace nanquest::viewer
