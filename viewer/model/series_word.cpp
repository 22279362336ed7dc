#include "viewer/model/series_word.h"

#include <algorithm>

#include "viewer/model/numbers.h"

namespace nanquest::viewer {
namespace {

/// "" for the one rank that there is.
std::string on_ranks(std::size_t heard, std::int32_t world_size) {
  const auto all = static_cast<std::size_t>(std::max(world_size, 1));
  if (heard < all) return " on " + grouped(heard) + " of " + counted(all, "rank");
  return heard == 1 ? "" : " on " + counted(heard, "rank");
}

std::string bad_step_text(const SeriesWord& word, bool one_of_many) {
  std::string what = one_of_many ? "rank " + std::to_string(word.rank) : "";
  if (!word.bad.empty()) what += (what.empty() ? "" : ", ") + word.bad;
  return "Step " + exact_number(*word.bad_step) + " was not finite" +
         (what.empty() ? "" : " (" + what + ")") + ", says the series, but its incident file is not here";
}

}  // namespace

SeriesWord word_of(std::int32_t rank, const History& history) {
  SeriesWord word;
  word.rank = rank;
  word.rows = history.rows();
  word.looks = history.looks_for_bad();
  if (history.empty()) return word;
  word.first = history.steps().front();
  word.last = history.steps().back();
  word.overflows = static_cast<std::uint64_t>(
      std::count_if(history.events().begin(), history.events().end(),
                    [](const GateEvent& e) { return e.gate == Gate::scale_overflow; }));
  if (const auto bad = history.first_bad()) {
    word.bad_step = history.steps()[bad->row];
    word.bad = bad->what;
  }
  return word;
}

std::string steps_text(const std::vector<SeriesWord>& words, std::int32_t world_size) {
  const SeriesWord* bad = nullptr;
  for (const SeriesWord& word : words)
    if (word.bad_step && (bad == nullptr || *word.bad_step < *bad->bad_step)) bad = &word;
  if (bad != nullptr) return bad_step_text(*bad, words.size() > 1);
  for (const SeriesWord& word : words)
    if (!word.error.empty()) return "No incident is here, and a series can't be read: " + word.error;
  const auto none = [](const SeriesWord& word) { return word.rows == 0; };
  if (std::all_of(words.begin(), words.end(), none))
    return "No incident is here, and no series that says whether steps were finite";
  double first = words.front().first, last = words.front().last;
  std::uint64_t overflows = 0;
  for (const SeriesWord& word : words) {
    if (!word.looks || none(word))
      return "No incident is here; the series doesn't say whether steps were finite";
    first = std::max(first, word.first);
    last = std::min(last, word.last);
    overflows = std::max(overflows, word.overflows);
  }
  if (last < first) return "No incident is here; the series of the ranks have no step in common";
  std::string text = first == last ? "No incident: step " + exact_number(first) + " was finite"
                                   : "No incident: steps " + exact_number(first) + " to " +
                                         exact_number(last) + " were finite";
  text += on_ranks(words.size(), world_size);
  if (overflows > 0) text += ", but for " + counted(overflows, "overflow") + " of the loss scale";
  return text;
}

}  // namespace nanquest::viewer
