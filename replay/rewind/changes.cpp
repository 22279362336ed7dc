#include "replay/rewind/changes.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "probe/tensor/tensor_scan.h"
#include "replay/history/trend.h"
#include "replay/rewind/outside_writes.h"
#include "replay/verdict/last_bit.h"
#include "replay/verdict/setting_change.h"

namespace nanquest {
namespace {

constexpr const char* kKnown =
    "a tape can be run with lr=*FACTOR, warmup=STEPS, clip=NORM, moments=reset, precision=fp32|bf16|fp64, "
    "undo=STEP, skip=STEP and, where one operation is the update (fused optimizers), beta1, beta2, eps, "
    "weight_decay and momentum=VALUE or *FACTOR; anything else changes the program: nanquest rehearse";

/// Settings that operations of optimizers take as a number.
constexpr std::array<std::string_view, 5> kNumbers = {"beta1", "beta2", "eps", "weight-decay", "momentum"};
constexpr std::array<std::pair<std::string_view, Precision>, 3> kPrecisions = {
    {{"fp32", Precision::fp32}, {"bf16", Precision::bf16}, {"fp64", Precision::fp64}}};

Error usage(const std::string& text, const std::string& what) {
  return {ErrorCode::usage, "--set " + text + ": " + what, kKnown};
}

bool has_format(const SnapshotDoc& doc, DType format) {
  return std::any_of(doc.tensors.begin(), doc.tensors.end(),
                     [&](const TensorRow& row) { return row.dtype == format; });
}

/// Counters of steps stay as they are: a moment has more than one element, or its weight has only one.
std::vector<std::int32_t> moments_of(const SnapshotDoc& doc) {
  std::vector<std::int32_t> moments;
  for (std::size_t i = 0; i < doc.slots.size(); ++i) {
    const Slot& slot = doc.slots[i];
    if (slot.origin == SlotOrigin::optimizer_state && dtype_is_float(slot.dtype) &&
        slot.bytes > dtype_size(slot.dtype) && !slot.data.empty())
      moments.push_back(static_cast<std::int32_t>(i));
  }
  return moments;
}

/// Fraction bits of a weight of `format` that its computations use.
int fraction_bits(const SnapshotDoc& doc) {
  return has_format(doc, DType::float16) ? 10 : has_format(doc, DType::bfloat16) ? 7 : 23;
}

/// Changes element `i` of CPU memory of `format` by its last bit; false if it holds no normal number.
bool flip(void* memory, DType format, std::int64_t i, int bits) {
  const std::size_t size = dtype_size(format);
  auto* const place = static_cast<std::byte*>(memory) + static_cast<std::size_t>(i) * size;
  if (format == DType::float32) {
    float value = 0;
    std::memcpy(&value, place, sizeof value);
    if (!std::isnormal(value)) return false;
    std::uint32_t raw = 0;
    std::memcpy(&raw, place, sizeof raw);
    raw ^= last_bit(bits);
    std::memcpy(place, &raw, sizeof raw);
    return true;
  }
  std::uint64_t raw = 0;
  std::memcpy(&raw, place, size);
  if (raw == 0) return false;
  raw ^= 1;
  std::memcpy(place, &raw, size);
  return true;
}

}  // namespace

Result<TapeChange> parse_change(const std::string& text, const TapeDoc& tape, std::int64_t bad_step) {
  const Result<SettingChange> set = parse_setting(text);
  if (!set) return usage(text, "it has no value");
  const auto& [key, value, factor, number] = *set;
  const std::optional<double> plain = set->plain();
  const bool whole = plain && *plain == std::floor(*plain) && *plain <= 1e9;
  if (value.find(',') != std::string::npos)
    return usage(text, "one change at a time, each with its own --set");
  TapeChange made;
  if (key == "lr") {
    if (!factor || !number || !(*number >= 0))
      return usage(text, "a tape knows updates, not rates: a factor of them is wanted, lr=*0.5");
    made.change.rate = *number;
  } else if (key == "warmup") {
    if (!whole || !(*plain > 0)) return usage(text, "steps are wanted, warmup=32");
    made.change.warmup = static_cast<std::int64_t>(*plain);
  } else if (key == "clip") {
    if (!plain || !(*plain > 0)) return usage(text, "a norm above 0 is wanted, clip=1.0");
    made.change.clip = *plain;
  } else if (key == "moments" && value == "reset") {
    for (const std::int32_t slot : moments_of(tape.trace))
      made.change.slots[slot] = [](at::Tensor& moment) { moment.zero_(); };
    if (made.change.slots.empty()) made.not_tried = "the optimizer kept no moments when the tape began";
  } else if (key == "precision") {
    const auto found = std::find_if(kPrecisions.begin(), kPrecisions.end(),
                                    [&wanted = value](const auto& known) { return known.first == wanted; });
    if (found == kPrecisions.end()) return usage(text, "no such precision");
    made.change.precision = found->second;
  } else if (std::find(kNumbers.begin(), kNumbers.end(), key) != kNumbers.end()) {
    if (!number || *number < 0)
      return usage(text, "a number of 0 or more is wanted, or a factor: " + key + "=0.95, " + key + "=*0.5");
    std::string argument = key;
    std::replace(argument.begin(), argument.end(), '-', '_');
    made.change.number = NumberChange{.name = argument, .value = *number, .factor = factor};
  } else if (key == "undo") {
    if (!whole) return usage(text, "a step is wanted, undo=120");
    made.change.undo = static_cast<std::int64_t>(*plain);
  } else if (key == "skip") {
    const std::int64_t first = tape.steps.empty() ? bad_step : tape.steps.front().step;
    if (!whole || *plain < static_cast<double>(first) || *plain > static_cast<double>(bad_step))
      return usage(text, "a step of the tape is wanted, skip=" + std::to_string(first) +
                             " to skip=" + std::to_string(bad_step));
    made.leaves_out = static_cast<std::int64_t>(*plain);
  } else {
    return usage(text, "not on a tape");
  }
  return made;
}

std::vector<std::string> usual_changes(const TapeDoc& tape, std::int64_t bad_step) {
  std::vector<std::string> changes = {"lr=*0.5",  "lr=*0.1",
                                      "lr=*0.01", "warmup=" + std::to_string(tape.steps.size()),
                                      "clip=1",   "moments=reset"};
  std::vector<double> losses;
  for (const TapeStep& step : tape.steps)
    if (step.step < bad_step) losses.push_back(step.loss_value);
  if (const auto jump = first_jump(losses))
    changes.insert(changes.begin(), "skip=" + std::to_string(tape.steps[*jump].step));
  if (has_format(tape.trace, DType::float16) || has_format(tape.trace, DType::bfloat16))
    changes.emplace_back("precision=fp32");
  for (const auto& [name, value] : {std::pair{"beta2", "0.95"}, {"eps", "*100"}})
    if (!places_of(tape.steps, tape.trace, name).empty()) changes.push_back(std::string(name) + "=" + value);
  for (const std::int64_t step : odd_steps(tape)) changes.push_back("undo=" + std::to_string(step));
  changes.push_back("skip=" + std::to_string(bad_step));
  return changes;
}

std::optional<TapeRunner::Change> placebo(const Replayer& tape, std::uint64_t seed, std::string& text) {
  const SnapshotDoc& doc = tape.doc();
  std::vector<std::int32_t> weights;
  for (std::size_t i = 0; i < doc.slots.size(); ++i)
    if (const Slot& slot = doc.slots[i]; slot.origin == SlotOrigin::parameter && !slot.data.empty() &&
                                         dtype_is_float(slot.dtype) && slot.bytes >= dtype_size(slot.dtype))
      weights.push_back(static_cast<std::int32_t>(i));
  if (weights.empty()) return std::nullopt;
  const int bits = fraction_bits(doc);
  std::uint64_t state = seed;
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const std::int32_t slot = weights[next_random(state) % weights.size()];
    const Slot& facts = doc.slots[static_cast<std::size_t>(slot)];
    const auto stored = tape.tensor(facts.data);
    if (!stored || stored->numel() == 0) continue;
    const auto count = static_cast<std::uint64_t>(stored->nbytes() / dtype_size(facts.dtype));
    const auto i = static_cast<std::int64_t>(next_random(state) % count);
    at::Tensor one = stored->contiguous()
                         .view({-1})
                         .view(at::kByte)
                         .narrow(0, i * static_cast<std::int64_t>(dtype_size(facts.dtype)),
                                 static_cast<std::int64_t>(dtype_size(facts.dtype)))
                         .clone();
    if (!flip(one.mutable_data_ptr(), facts.dtype, 0, bits)) continue;
    TapeRunner::Change change;
    change.slots[slot] = [i, bits, format = facts.dtype](at::Tensor& weight) {
      (void)flip(weight.mutable_data_ptr(), format, i, bits);
    };
    text = "the last bit of " + (facts.name.empty() ? "a weight" : facts.name) + "[" + std::to_string(i) +
           "], seed " + std::to_string(seed);
    return change;
  }
  return std::nullopt;
}

}  // namespace nanquest
