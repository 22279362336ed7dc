// nanquest-replay audit FILE: whether the machine computed a recorded step right.
#include "replay/audit/audit.h"

#include <cstdio>

#include "replay/cli/commands.h"

namespace nanquest::cli {

int audit_command(const Common& common) {
  const auto replayer = open_snapshot(common);
  if (!replayer) return fail(replayer.error());
  const Audit result = audit(*replayer);
  if (common.json)
    std::fputs(audit_json(result, common.snapshot).c_str(), stdout);
  else
    std::printf("%s\n", audit_text(result).c_str());
  return static_cast<int>(result.answer == AuditAnswer::same ? ExitCode::ok : ExitCode::finding);
}

}  // namespace nanquest::cli
