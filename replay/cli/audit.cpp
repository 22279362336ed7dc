// nanquest-replay audit FILE: whether the machine computed a recorded step right.
#include "replay/audit/audit.h"

#include <ATen/Parallel.h>

#include <cstdio>
#include <cstdlib>

#include "replay/cli/commands.h"

namespace nanquest::cli {
namespace {

/// A launcher of several ranks (torchrun) sets the number of threads for its processes alone: here it becomes
/// what they had.
void take_number_of_threads(const SnapshotDoc& doc) {
  const char* const name = "OMP_NUM_THREADS";
  const auto recorded = doc.environment.find(std::string("env.") + name);
  if (recorded == doc.environment.end() || std::getenv(name)) return;
  const int threads = std::atoi(recorded->second.c_str());
  if (threads < 1 || threads > 1024) return;
  ::setenv(name, recorded->second.c_str(), 1);
  at::set_num_threads(threads);
}

}  // namespace

int audit_command(const Common& common) {
  const auto replayer = open_snapshot(common);
  if (!replayer) return fail(replayer.error());
  take_number_of_threads(replayer->doc());
  const Audit result = audit(*replayer);
  if (common.json)
    std::fputs(audit_json(result, common.snapshot).c_str(), stdout);
  else
    std::printf("%s\n", audit_text(result).c_str());
  return static_cast<int>(result.answer == AuditAnswer::same ? ExitCode::ok : ExitCode::finding);
}

}  // namespace nanquest::cli
