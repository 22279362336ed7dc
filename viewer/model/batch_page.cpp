#include "viewer/model/batch_page.h"

#include <algorithm>

#include "probe/trace/samples.h"
#include "viewer/model/numbers.h"
#include "viewer/model/verdict_page.h"
#include "viewer/model/verdict_words.h"

namespace nanquest::viewer {
namespace {

constexpr std::size_t kStretches = 24;  // of whole numbers, told of a sample

std::string bad_or_none(const Extremes& e) {
  return e.non_finite() == 0 ? "none" : bad_text(e.nan, e.pos_inf, e.neg_inf);
}

TensorWords words_of(const BatchTensor& t) {
  TensorWords words;
  words.name = t.tensor.name;
  words.dtype = dtype_name(t.tensor.dtype);
  words.shape = shape_text(t.tensor.shape);
  words.path = t.tensor.path;
  words.by = t.by_sample ? "one a row" : "not by sample";
  if (!t.pictures.empty()) words.by += ", pictures";
  words.range = t.error.empty() ? range_text(t.all) : t.error;
  if (!t.error.empty()) return words;
  words.not_finite = bad_or_none(t.all);
  if (t.partial) words.not_finite += " of the first " + grouped(kReadElements);
  words.bad = t.all;
  return words;
}

/// What a tensor holds of a sample: all whole numbers, for other values the range.
std::string held(const BatchTensor& t, std::size_t sample) {
  if (sample >= t.values.size()) return range_text(t.samples[sample]);
  const std::uint64_t row = element_count(t.tensor.shape) / t.samples.size();
  return values_text(t.values[sample], kStretches, row);
}

SampleWords sample_of(const Session& session, const Batch* batch, std::int64_t number) {
  const SnapshotDoc& doc = session.incident()->doc;
  const auto at = static_cast<std::size_t>(number);
  SampleWords words;
  words.number = number;
  words.id = sample_id(doc, static_cast<std::int64_t>(at));
  words.blamed = session.verdict() && std::ranges::count(session.verdict()->poison, number) > 0;
  std::vector<std::int64_t> tokens;
  for (const BatchTensor& t : batch == nullptr ? std::vector<BatchTensor>() : batch->tensors) {
    if (!t.by_sample || at >= t.samples.size()) continue;
    words.bad.add(t.samples[at]);
    words.holds += (words.holds.empty() ? "" : "; ") + t.tensor.name + " " + held(t, at);
    if (tokens.empty() && at < t.values.size()) tokens = t.values[at];
  }
  if (batch != nullptr && !words.holds.empty()) words.not_finite = bad_or_none(words.bad);
  if (at < doc.sample_texts.size()) words.text = marked_text(doc.sample_texts[at], tokens);
  return words;
}

std::string headline_of(const Session& session, const BatchPage& page) {
  std::string text = page.samples.empty() ? "How many samples there are is not on record"
                                          : counted(page.samples.size(), "sample");
  text += ", " + counted(session.incident()->doc.batch.size(), "tensor");
  const std::string blamed = session.verdict() ? samples_text(*session.verdict()) : "";
  return blamed.empty() ? text : text + ". To blame: " + blamed;
}

}  // namespace

const char* blamed_words(bool blamed) {
  return blamed ? "to blame" : "";
}

std::string range_text(const Extremes& e) {
  if (!e.has_finite()) return e.non_finite() > 0 ? "none is finite" : "-";
  return e.min == e.max ? short_number(e.min) : short_number(e.min) + " to " + short_number(e.max);
}

BatchPage batch_page(const Session& session, const Batch* batch) {
  BatchPage page;
  if (session.incident() == nullptr) {
    page.headline = nothing_to_show(session);
    return page;
  }
  const SnapshotDoc& doc = session.incident()->doc;
  if (doc.batch.empty() && doc.sample_ids.empty()) {
    page.headline = "No batch is on record of this step";
    return page;
  }
  for (std::int64_t i = 0; i < sample_count(doc); ++i) page.samples.push_back(sample_of(session, batch, i));
  for (const BatchTensor& t : batch == nullptr ? std::vector<BatchTensor>() : batch->tensors)
    page.tensors.push_back(words_of(t));
  page.headline = headline_of(session, page);
  return page;
}

}  // namespace nanquest::viewer
