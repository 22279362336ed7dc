#include "replay/cause/culprit.h"

#include "probe/trace/culprit.h"

namespace nanquest {

void ensure_culprit(SnapshotDoc& doc) {
  if (doc.culprit.value.empty()) find_culprit(doc);
}

}  // namespace nanquest
