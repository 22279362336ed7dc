#include "probe/attach/excursions.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <utility>

#include "probe/step/what_moved.h"

namespace nanquest::attach {
namespace {

constexpr int kShareOfFiles = 4;

std::string in_words(const Band::Range& usual) {
  if (usual.edge == 0) return "";  // there is no band
  char text[64];
  std::snprintf(text, sizeof text, usual.low < usual.high ? "%.3g to %.3g" : "%.3g", usual.low, usual.high);
  return text;
}

std::optional<SpikeFigure> figure_of(const Band::Range& usual, double value, bool out) {
  if (usual.edge == 0 || !std::isfinite(value)) return std::nullopt;
  return SpikeFigure{value, out, usual.low, usual.middle, usual.high, usual.back, usual.edge};
}

}  // namespace

Facts Excursions::facts(const BandNews& news, std::int64_t step, double loss, double norm,
                        const std::vector<SeriesTable>& tables) {
  Facts facts;
  if (news.kind == BandNews::diverged) {
    facts.push_back({.kind = Fact::diverged,
                     .name = in_words(news.usual_loss),
                     .more = what_moved(tables, news.since),
                     .since = news.since,
                     .value = loss});
  } else {
    if (news.loss)
      facts.push_back(
          {.kind = Fact::spike, .name = "the loss", .more = in_words(news.usual_loss), .value = loss});
    if (news.norm)
      facts.push_back({.kind = facts.empty() ? Fact::spike : Fact::spike_too,
                       .name = "the gradient norm",
                       .more = in_words(news.usual_norm),
                       .value = norm});
  }
  facts.front().step = step;
  return facts;
}

SpikeNote Excursions::note(const BandNews& news, double loss, double norm) {
  return {news.kind == BandNews::diverged, news.since, figure_of(news.usual_loss, loss, news.loss),
          figure_of(news.usual_norm, norm, news.norm)};
}

bool Excursions::begins(const BandNews& news) {
  const bool known = news.kind == BandNews::diverged && told_ == news.since;
  told_ = news.since;
  count_ += known ? 0 : 1;
  return !known;
}

bool Excursions::has_file_left() const {
  return files_ < std::min(files_allowed_, std::max(1, files_allowed_ / kShareOfFiles));
}

}  // namespace nanquest::attach
