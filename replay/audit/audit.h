/// audit: a recorded step, good or bad, run again to see whether the machine computed it right.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "replay/audit/flipped_bit.h"
#include "replay/trace/replayer.h"

namespace nanquest {

/// `same`: every output came back bit for bit. `hardware`: one did not, and no other explanation is left.
/// `unknown`: one did not, or nothing could be compared.
enum class AuditAnswer : std::uint8_t { same, hardware, unknown };

struct Audit {
  AuditAnswer answer = AuditAnswer::unknown;
  std::string why;  ///< why it is unknown
  std::int64_t step = 0;
  std::int32_t rank = 0, world_size = 1;
  std::int64_t compared = 0, differ = 0;  ///< outputs
  OpId op;                                ///< the first whose output differs; none
  std::string op_name, module;            ///< of that op
  std::int32_t entry = 0;                 ///< of what it wrote
  std::vector<std::int64_t> sizes;        ///< of that output
  std::optional<FlippedBit> bit;          ///< the one that explains the difference, if one does
  double seconds = 0;
};

/// Runs the step once on the CPU, and again where an output differs. HARDWARE needs hashes of every output,
/// the recorded environment, an op that gives the same bits whenever it runs and reads no memory that others
/// may write, three runs here that agree, and that neither another number of threads nor other kernels give
/// the recorded bits.
Audit audit(const Replayer& replayer);

/// One line: "step 200: HARDWARE: aten::addmm in blocks.1 (op 34): …"; "step 200 of rank 3: …" of several.
std::string audit_text(const Audit& result);
/// The document "nanquest.audit", version 1 (docs/replay.md).
std::string audit_json(const Audit& result, const std::string& file);

}  // namespace nanquest
