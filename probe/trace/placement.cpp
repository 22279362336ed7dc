#include "probe/trace/placement.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <vector>

#include "probe/trace/collectives.h"
#include "probe/trace/names.h"

namespace nanquest {
namespace {

struct Pipeline {
  std::int32_t micro_batches = 0, stages = 0;
  std::vector<std::int32_t> own;  ///< stages of this process
};

/// Nothing if there is none, or if the note is invalid.
std::optional<Pipeline> pipeline_of(const SnapshotDoc& doc) {
  const auto note = doc.environment.find(std::string(kPipelineKey));
  if (note == doc.environment.end()) return std::nullopt;
  std::vector<std::int32_t> numbers;
  const char* at = note->second.data();
  const char* const end = at + note->second.size();
  while (at < end) {
    const auto read = std::from_chars(at, end, numbers.emplace_back());
    if (read.ec != std::errc() || numbers.back() < 0) return std::nullopt;
    at = read.ptr + (read.ptr < end);
  }
  if (numbers.size() < 3 || numbers[0] == 0) return std::nullopt;
  return Pipeline{numbers[0], numbers[1], {numbers.begin() + 2, numbers.end()}};
}

bool is_state(const std::string& origin) {
  return origin == origin_name(SlotOrigin::parameter) || origin == origin_name(SlotOrigin::buffer) ||
         origin == origin_name(SlotOrigin::optimizer_state);
}

}  // namespace

bool tells_of_ranks(std::string_view key) {
  return key.starts_with(kPartKey) || key == kPipelineKey || key.starts_with(kProcessGroupKey) ||
         key == kReplicasKey || key == kReplicasButKey;
}

std::string part_of(const SnapshotDoc& doc, const std::string& name) {
  // An optimizer's state is named "exp_avg." followed by the weight's name.
  for (std::string of = name; !of.empty();) {
    const auto found = doc.environment.find(std::string(kPartKey) + of);
    if (found != doc.environment.end()) return found->second;
    const std::size_t dot = of.find('.');
    if (of != name || dot == std::string::npos) break;
    of.erase(0, dot + 1);
  }
  return "";
}

std::string pass_of(const SnapshotDoc& doc, OpId op) {
  const OpRow* row = find_row(doc, op);
  if (row && is_collective(row->name)) {
    const auto& lineage = doc.culprit.lineage;
    const auto after = std::find(lineage.begin(), lineage.end(), op.row());
    const auto found = std::find_if(after, lineage.end(), [&](std::int32_t next) {
      const OpRow* reader = find_row(doc, OpId{next});
      return reader && !is_collective(reader->name);
    });
    row = found == lineage.end() ? nullptr : find_row(doc, OpId{*found});
  }
  const std::optional<Pipeline> pipeline = pipeline_of(doc);
  if (!row || !pipeline || row->phase == Phase::optimizer || row->micro_batch < 0) return "";
  const auto nth = static_cast<std::size_t>(row->micro_batch / pipeline->micro_batches);
  if (nth >= pipeline->own.size()) return "";
  std::string stage =
      "stage " + std::to_string(pipeline->own[nth] + 1) + " of " + std::to_string(pipeline->stages);
  if (is_state(doc.culprit.origin)) return stage;
  return "micro-batch " + std::to_string(row->micro_batch % pipeline->micro_batches + 1) + " of " +
         std::to_string(pipeline->micro_batches) + ", " + stage;
}

}  // namespace nanquest
