#include "probe/trace/samples.h"

#include <algorithm>
#include <cstdlib>

namespace nanquest {
namespace {

/// Passes of the step by the names of its batch: "x#3" is what the third was called with as "x".
std::int64_t passes_of(const SnapshotDoc& doc) {
  std::int64_t passes = 1;
  for (const NamedTensor& t : doc.batch)
    if (const auto mark = t.name.rfind('#'); mark != std::string::npos)
      passes = std::max<std::int64_t>(passes, std::atoll(t.name.c_str() + mark + 1));
  return passes;
}

}  // namespace

std::int64_t batch_size(const SnapshotDoc& doc) {
  std::int64_t common = 0;
  for (const NamedTensor& t : doc.batch) {
    if (t.shape.empty()) continue;
    if (common == 0) common = t.shape[0];
    if (common != t.shape[0]) return 0;
  }
  const auto named = static_cast<std::int64_t>(doc.sample_ids.size());
  const bool agrees = named == 0 || (common > 0 && named % common == 0 && named / common <= passes_of(doc));
  return agrees ? common : 0;
}

std::string sample_id(const SnapshotDoc& doc, std::int64_t sample) {
  const auto named = static_cast<std::int64_t>(doc.sample_ids.size());
  bool shaped = false, fits = false;
  for (const NamedTensor& t : doc.batch) {
    shaped = shaped || !t.shape.empty();
    fits = fits || (!t.shape.empty() && t.shape[0] == named);
  }
  if (passes_of(doc) > 1 || (shaped && !fits) || sample < 0 || sample >= named) return {};
  return doc.sample_ids[static_cast<std::size_t>(sample)];
}

}  // namespace nanquest
