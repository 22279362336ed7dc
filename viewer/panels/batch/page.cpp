#include <algorithm>
#include <utility>

#include "viewer/model/batch_page.h"
#include "viewer/model/numbers.h"
#include "viewer/panels/registry.h"

namespace nanquest::viewer {
namespace {

constexpr std::size_t kGlanceSamples = 40;  // samples
constexpr std::size_t kMostText = 120;      // characters of a cell, at a glance

PageTable tensors_of(const BatchPage& batch) {
  PageTable table{PageTable::Kind::plain,
                  "Tensors",
                  {{"tensor"}, {"type"}, {"shape"}, {"values"}, {"not finite"}, {"samples"}},
                  {}};
  for (const TensorWords& t : batch.tensors)
    table.rows.push_back({{t.name, t.dtype, t.shape, t.range, t.not_finite, t.by},
                          t.bad.non_finite() > 0 ? Sign::non_finite : Sign::none,
                          Link::to_tensor(t.path)});
  return table;
}

/// Cut behind a character, never within one.
std::string cut(const std::string& text, std::size_t most) {
  if (text.size() <= most) return text;
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0u) == 0x80u) --end;
  return text.substr(0, end) + "...";
}

PageTable samples_of(const BatchPage& batch, std::size_t chosen, Extent extent) {
  const bool ids = std::ranges::any_of(batch.samples, [](const SampleWords& s) { return !s.id.empty(); });
  const bool texts = std::ranges::any_of(batch.samples, [](const SampleWords& s) { return !s.text.empty(); });
  PageTable table{PageTable::Kind::plain, "Samples", {{"sample", true}}, {}};
  if (ids) table.columns.push_back({"id"});
  for (const char* title : {"verdict", "not finite", "holds"}) table.columns.push_back({title});
  if (texts) table.columns.push_back({"text"});
  const std::size_t count = batch.samples.size(),
                    most = extent == Extent::glance ? kGlanceSamples : kWholeRows;
  const std::size_t first =
      count <= most ? 0 : std::min(chosen > most / 2 ? chosen - most / 2 : 0, count - most);
  const std::size_t wide = extent == Extent::glance ? kMostText : std::string::npos;
  for (std::size_t i = first; i < std::min(count, first + most); ++i) {
    const SampleWords& s = batch.samples[i];
    PageTable::Row row{{std::to_string(s.number)},
                       s.blamed                 ? Sign::caution
                       : s.bad.non_finite() > 0 ? Sign::non_finite
                                                : Sign::none,
                       Link::to_sample(s.number, "")};
    if (ids) row.cells.push_back(s.id);
    for (std::string cell : {std::string(blamed_words(s.blamed)), s.not_finite, cut(s.holds, wide)})
      row.cells.push_back(std::move(cell));
    if (texts) row.cells.push_back(cut(s.text, wide));
    table.rows.push_back(std::move(row));
  }
  if (count > most)
    table.title.append(" ")
        .append(grouped(first))
        .append(" to ")
        .append(grouped(first + most - 1))
        .append(" of " + grouped(count) + "; --csv batch holds them all");
  return table;
}

}  // namespace

PanelPage page_of_batch(Session& session, Extent extent) {
  const BatchPage batch = batch_page(session, session.batch());
  PanelPage page;
  page.headline = batch.headline;
  const auto chosen = static_cast<std::size_t>(std::max<std::int64_t>(session.selection().sample, 0));
  if (session.selection().sample >= 0 && chosen < batch.samples.size()) {
    const SampleWords& s = batch.samples[chosen];
    page.facts.push_back({"Sample", std::to_string(s.number) + (s.id.empty() ? "" : " (" + s.id + ")") +
                                        (s.blamed ? ", " + std::string(blamed_words(true)) : "")});
    if (!s.not_finite.empty()) page.facts.push_back({"Not finite", s.not_finite});
    if (!s.holds.empty()) page.facts.push_back({"Holds", s.holds});
    if (!s.text.empty()) page.facts.push_back({"Text", s.text});
  }
  if (!batch.tensors.empty()) page.tables.push_back(tensors_of(batch));
  if (!batch.samples.empty()) page.tables.push_back(samples_of(batch, chosen, extent));
  return page;
}

}  // namespace nanquest::viewer
