#include "probe/trace/samples.h"

namespace nanquest {

std::int64_t batch_size(const SnapshotDoc& doc) {
  std::int64_t batch = static_cast<std::int64_t>(doc.sample_ids.size());
  std::int64_t common = 0;
  for (const NamedTensor& t : doc.batch) {
    if (t.shape.empty()) continue;
    if (common == 0) common = t.shape[0];
    if (common != t.shape[0]) return 0;
  }
  return batch == 0 || batch == common ? common : 0;
}

}  // namespace nanquest
