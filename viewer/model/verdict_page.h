/// VerdictPage: the answer to "what happened?", in the order of a reader's questions. The window and --text
/// show the same page: its facts, then its tables.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "viewer/model/page.h"
#include "viewer/model/session.h"
#include "viewer/model/verdict_series.h"

namespace nanquest::viewer {

struct VerdictPage {
  enum class State { nothing_open, not_replayed, harmless, unseen, diagnosed };
  State state = State::nothing_open;
  std::string headline;        ///< one sentence
  std::optional<Label> cause;  ///< nothing before a replay
  double confidence = 0;       ///< 0 … 1, meaningful when diagnosed
  std::vector<Fact> facts;
  std::string command;  ///< what to run next; "" if nothing
  PrecisionInfo precision;
  std::optional<Fix> fix;
  std::vector<Claim> claims;  ///< every cause that was considered
  std::vector<Evidence> evidence;
  std::vector<Counterfactual> trials;  ///< placebos among them
  std::vector<std::string> not_tested;
  std::vector<LayerSeries> series;  ///< of the layers that it names

  bool fix_verified() const { return fix && fix->verified; }
};

/// The page of the open incident.
VerdictPage verdict_page(const Session& session);

/// For panels of ops, tensors and samples if none can be shown: why not, in a sentence.
std::string nothing_to_show(const Session& session);
/// The same as a page: of a run without an incident, with what is worth knowing while nothing is wrong.
PanelPage nothing_page(const Session& session);

/// Claims, evidence, what was tried, placebos and open questions; those that have rows, in this order.
std::vector<PageTable> verdict_tables(const VerdictPage& page);
/// From where the blamed op was called, and the program's lines there; those that have rows.
std::vector<PageTable> place_tables(const Session& session);

}  // namespace nanquest::viewer
