#include "replay/trace/environment.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <mutex>

#include "probe/record/record.h"
#include "probe/snapshot/sharing.h"
#include "probe/trace/lead_ops.h"
#include "probe/trace/optimizer_settings.h"
#include "probe/trace/placement.h"
#include "probe/trace/spike_note.h"
#include "probe/trace/state_since.h"

namespace nanquest::trace {
namespace {

/// The recorded entry as a number, `otherwise` if there is none.
int recorded_number(const SnapshotDoc& doc, const std::string& key, int otherwise) {
  const auto entry = doc.environment.find(key);
  if (entry == doc.environment.end()) return otherwise;
  int value = otherwise;
  const std::string& text = entry->second;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc() && end == text.data() + text.size() ? value : otherwise;
}

/// True if the entry's value in this process does not matter to a replay; depends on whether the step's
/// memory was on the CPU only.
bool beside_the_point(const std::string& key, bool cpu_alone) {
  if (key.starts_with("autocast_")) return true;  // casts are ops of the trace; replay runs without autocast
  if (tells_of_ranks(key) || tells_of_spike(key) || tells_of_state(key)) return true;
  if (key.starts_with(kOptimizerKey) || key == kLeadOps || key == kLeadFound) return true;
  return cpu_alone && (key.ends_with("_cudnn") || key.ends_with("_cublas"));
}

}  // namespace

RunScope::RunScope(const SnapshotDoc& doc)
    : no_autocast_(c10::autocast_dispatch_keyset), threads_(at::get_num_threads()) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  {
    const std::lock_guard<std::mutex> lock(generator.mutex());
    generator_ = generator.get_state();
  }
  const int wanted = recorded_number(doc, "num_threads", threads_);
  if (wanted > 0 && wanted <= 1024 && wanted != threads_) at::set_num_threads(wanted);
  deterministic_ = at::globalContext().deterministicAlgorithms();
  warn_only_ = at::globalContext().deterministicAlgorithmsWarnOnly();
  const auto entry = doc.environment.find("deterministic_algorithms");
  if (entry != doc.environment.end() && !deterministic_ && entry->second == "true")
    at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/true);
}

RunScope::~RunScope() {
  at::globalContext().setDeterministicAlgorithms(deterministic_, warn_only_);
  if (at::get_num_threads() != threads_) at::set_num_threads(threads_);
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_state(generator_);
}

std::vector<std::string> environment_differences(const SnapshotDoc& doc) {
  std::vector<std::string> differences;
  const bool cpu_alone =
      std::all_of(doc.slots.begin(), doc.slots.end(), [](const Slot& s) { return s.device == "cpu"; });
  const std::map<std::string, std::string> here = capture_environment();
  for (const auto& [key, recorded] : doc.environment) {
    if (beside_the_point(key, cpu_alone)) continue;
    const auto entry = here.find(key);
    const std::string value = entry == here.end() ? "(unset)" : entry->second;
    if (value == recorded) continue;
    std::string line = key;
    line.append(": recorded ").append(recorded).append(", here ").append(value);
    if (key == "num_threads") line += " (set to the recorded number for the run)";
    if (key == "deterministic_algorithms" && recorded == "true") line += " (set as recorded for the run)";
    differences.push_back(std::move(line));
  }
  // If variables may have been removed from a file, it is unknown whether one was set.
  const bool redacted = !sharing_of(doc).redacted.empty();
  for (const auto& [key, value] : here)
    if (!redacted && key.starts_with("env.") && !doc.environment.empty() && !doc.environment.count(key))
      differences.emplace_back(key).append(": recorded (unset), here ").append(value);
  return differences;
}

bool has_other_kernels(const SnapshotDoc& doc) {
  const std::map<std::string, std::string> here = capture_environment();
  constexpr const char* kDecide[] = {"cpu_model", "cpu_capability", "torch_version", "mkldnn"};
  return std::any_of(std::begin(kDecide), std::end(kDecide), [&](const char* key) {
    const auto recorded = doc.environment.find(key), now = here.find(key);
    return recorded != doc.environment.end() && (now == here.end() || now->second != recorded->second);
  });
}

}  // namespace nanquest::trace
