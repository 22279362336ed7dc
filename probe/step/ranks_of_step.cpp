#include "probe/step/ranks_of_step.h"

#include <algorithm>

#include "probe/observe/process_groups.h"
#include "probe/step/one_line.h"
#include "probe/trace/collective_call.h"
#include "probe/trace/collectives.h"
#include "probe/trace/culprit.h"

namespace nanquest {

void add_process_groups(SnapshotDoc& doc) {
  for (const std::string& name : process_groups_in(doc)) {
    std::string ranks;
    for (const std::uint64_t rank : ranks_of_process_group(name)) {
      if (!ranks.empty()) ranks += ' ';
      ranks += std::to_string(rank);
    }
    if (!ranks.empty()) doc.environment[std::string(kProcessGroupKey) + name] = ranks;
  }
}

void add_replicas(SnapshotDoc& doc, const std::string& ranks, const std::string& others) {
  if (ranks.empty()) return;
  doc.environment[kReplicasKey] = ranks;
  if (!others.empty()) doc.environment[kReplicasButKey] = others;
}

RankRow row_of(const SnapshotDoc& doc, bool loss_bad) {
  RankRow row;
  if (!doc.culprit.value.empty()) {
    row.standing = arrived_by(doc).empty() ? Standing::made_here : Standing::arrived;
    row.text = one_line(describe_culprit(doc));
    row.collectives = std::count_if(doc.ops.begin(), doc.ops.begin() + std::max(doc.culprit.op, 0),
                                    [](const OpRow& op) { return is_collective(op.name); });
  } else if (loss_bad) {
    row.standing = Standing::loss_bad;
  }
  return row;
}

}  // namespace nanquest
