#include "probe/step/state_check.h"

#include <algorithm>

#include "probe/record/tables.h"
#include "probe/step/weight_watch.h"
#include "probe/tensor/tensor_scan.h"
#include "probe/trace/births.h"
#include "probe/trace/culprit.h"
#include "probe/trace/hidden.h"

namespace nanquest {
namespace {

ValueKinds kinds_in(const at::Tensor& values) {
  const auto stats = values.defined() ? stats_of(values, /*hash=*/false) : std::nullopt;
  return stats ? value_kinds({stats->nan, stats->pos_inf, stats->neg_inf}) : ValueKinds{0};
}

/// A row of bad steps of one kind may have so many good ones in between.
constexpr std::int64_t kRow = 10;

/// How many ops back an infinite constant is looked for.
constexpr std::size_t kOpsBack = 64;

/// Whether an infinite constant is among what was written there last: values were not looked at, so it may be
/// meant.
bool from_a_constant(const TraceGraph& graph, SlotId slot) {
  if (graph.writes(slot).empty()) return false;
  std::vector<OpId> ops{graph.writes(slot).back().op};
  for (std::size_t i = 0; i < ops.size() && i < kOpsBack; ++i) {
    if (bad_constants(graph.doc(), ops[i]).infinite) return true;
    for (const TensorId row : graph.reads(ops[i]))
      if (const OpId maker = graph.producer(row, ops[i]);
          maker && std::find(ops.begin(), ops.end(), maker) == ops.end())
        ops.push_back(maker);
  }
  return false;
}

/// Whether infinities in the slot were put in on purpose, as far as the step's record tells.
bool meant(Recorder& recorder, record::Step& step, std::uint32_t slot, const std::string& name,
           const at::Tensor& buffer) {
  StepTables tables(recorder, step);
  StepNames names;
  names.buffers = named_memory({{name, buffer}});
  tables.build(names);
  SnapshotDoc& doc = tables.recording.doc;
  return step.watch ? !find_culprit(doc) : from_a_constant(TraceGraph(doc), SlotId{slot});
}

}  // namespace

StateCheck::Names StateCheck::bad_now(std::string_view word) {
  Names names;
  for (const Part& part : parts_)
    if (word.empty() || part.word == word)
      add_non_finite(pass_, (part.word + " ").c_str(), part.tensors(), names);
  return names;
}

std::optional<std::string> StateCheck::bad_after(std::int64_t step, std::string_view word) {
  if (every_ <= 0) return std::nullopt;
  const auto part =
      std::find_if(parts_.begin(), parts_.end(), [&](const Part& each) { return each.word == word; });
  const NamedTensors all = part->tensors();
  std::int64_t elements = 0;
  bool on_cpu = true;
  for (const auto& [name, tensor] : all) {
    elements += tensor.numel();
    on_cpu = on_cpu && tensor.is_cpu();
  }
  if (!worth_every_step(elements, on_cpu) && !due(step)) return std::nullopt;
  const std::string bad = first_non_finite(pass_, all);
  return bad.empty() ? bad : part->word + " " + bad;
}

NamedTensors StateCheck::spoiled(Recorder& recorder, const NamedTensors& tensors, std::int64_t step,
                                 Look look) const {
  record::Step* const recorded = recorder.current();
  NamedTensors found;
  if ((every_ <= 0 && !look.always) || !recorded || !recorded->usable) return found;
  std::int64_t elements = 0;
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.defined() || !is_plain(tensor) || !tensor.is_floating_point()) continue;
    const c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
    if (!recorder.wrote(storage, look.first)) continue;
    const std::uint32_t slot = recorded->slots.find(storage);
    elements += tensor.numel();
    if (!look.always && !due(step) && !worth_every_step(elements, tensor.is_cpu())) continue;
    ValueKinds kinds = kinds_in(tensor);
    if (!kinds) continue;
    kinds &= static_cast<ValueKinds>(~kinds_in(StepTables(recorder, *recorded).first_value(storage)));
    if (!kinds || (!(kinds & kKindNan) && meant(recorder, *recorded, slot, name, tensor))) continue;
    found.emplace_back(name, tensor);
  }
  return found;
}

bool StateCheck::hides_new_overflow(const SnapshotDoc& doc) {
  bool fresh = false;
  for (const std::int32_t index : hidden_overflows(doc)) {
    const OpRow& op = doc.ops[static_cast<std::size_t>(index)];
    const std::string module =
        op.module == kNone ? "" : doc.modules[static_cast<std::size_t>(op.module)].path;
    fresh = hidden_.insert(op.name + " " + module + " " + op.node).second || fresh;
  }
  return fresh;
}

Facts StateCheck::began(std::int64_t step, const Names& bad, bool told) {
  beginning_known_ = true;
  from_the_beginning_ = {bad.begin(), bad.end()};
  if (bad.empty() || told) return {};
  return {{.kind = Fact::bad_at_start,
           .name = bad.front(),
           .step = step,
           .number = static_cast<std::int64_t>(bad.size()) - 1}};
}

bool StateCheck::since_beginning(const Names& bad) const {
  return !bad.empty() && std::all_of(bad.begin(), bad.end(), [&](const std::string& name) {
    return from_the_beginning_.count(name) > 0;
  });
}

void StateCheck::incident(bool gate_failed) {
  gate_failed_ = gate_failed;
  harmless_ = false;
  damaged_.clear();
  arrives_.clear();
}

void StateCheck::was_well() {
  was_well_ = true;
  harmless_ = harmless_ || !gate_failed_;
  arrives_.clear();
}

void StateCheck::left_behind(const Names& bad) {
  // With what was there before the first update, and was no harm to a good step, this one was not made
  // either.
  for (const std::string& name : bad)
    if (!was_well_ || !from_the_beginning_.count(name)) damaged_.insert(name);
}

StateCheck::Names StateCheck::left_of(const Names& bad) const {
  Names left;
  std::copy_if(bad.begin(), bad.end(), std::back_inserter(left),
               [&](const std::string& name) { return is_damaged(name); });
  return left;
}

bool StateCheck::carries_on(const Names& bad) const {
  return !left_of(bad).empty();
}

std::optional<StateCheck::Names> StateCheck::of_last_incident(const Names& bad, bool update_made,
                                                              const std::function<Blame()>& blamed) const {
  const bool by_state = carries_on(bad), arrives = !arrives_.empty();
  if (update_made) {  // what a good step's update spoiled is news
    const bool known =
        std::all_of(bad.begin(), bad.end(), [&](const std::string& name) { return is_damaged(name); });
    if (by_state && !known)  // or it spoiled them by what was damaged (a moment)
      if (const Blame blame = blamed(); blame.known && is_damaged(blame.state)) return bad;
    return by_state && known ? std::optional(bad) : std::nullopt;
  }
  const bool by_damage = by_state && !harmless_;
  if (!by_damage && !arrives) return std::nullopt;
  const Blame blame = blamed();
  if (by_damage && blame.damage_matters && (!blame.known || is_damaged(blame.state))) return bad;
  if (arrives && blame.known && blame.arrived_by == arrives_) return Names();
  return std::nullopt;
}

void StateCheck::was_bad(std::int64_t step, const Blame& blame) {
  if (step > last_of_row_ + kRow) row_.clear();
  if (!blame.by_op || blame.op.empty() || !blame.arrived_by.empty()) return;
  row_.emplace(blame.op + " " + blame.module, step);
  last_of_row_ = step;
}

std::optional<std::int64_t> StateCheck::repeats(std::int64_t step, const Blame& blame) {
  if (row_.empty() || step > last_of_row_ + kRow) return std::nullopt;
  auto found = row_.end();
  if (!blame.known && step == last_of_row_ + 1)
    found = row_.begin();
  else if (blame.by_op && blame.arrived_by.empty())
    found = row_.find(blame.op + " " + blame.module);
  if (found == row_.end()) return std::nullopt;
  last_of_row_ = step;
  return found->second;
}

StateCheck::Blame StateCheck::blame(SnapshotDoc& doc,
                                    const std::function<std::string(const std::string&)>& settled) const {
  if (!find_culprit(doc)) return {};
  const Culprit& culprit = doc.culprit;
  Blame blame{.known = true, .by_op = culprit.origin == "op", .arrived_by = arrived_by(doc)};
  std::string word = culprit.origin;
  std::replace(word.begin(), word.end(), '_', ' ');
  if (std::any_of(parts_.begin(), parts_.end(), [&](const Part& part) { return part.word == word; }))
    blame.state = word + " " + settled(culprit.tensor_name);
  // On record what the program keeps itself is a buffer like others.
  if (word == kBuffer)
    if (std::string kept = std::string(kKept) + " " + settled(culprit.tensor_name); is_damaged(kept))
      blame.state = std::move(kept);
  if (culprit.op == kNone) return blame;
  const OpRow& op = doc.ops[static_cast<std::size_t>(culprit.op)];
  blame.op = op.name;
  if (op.module != kNone) blame.module = doc.modules[static_cast<std::size_t>(op.module)].path;
  return blame;
}

Fact StateCheck::carried_on(std::int64_t step, const Names& bad, std::int64_t since) const {
  const auto named = std::find_if(bad.begin(), bad.end(), [&](const auto& name) { return is_damaged(name); });
  std::string what = named != bad.end() ? *named
                     : bad.empty()      ? "what arrives by " + arrives_
                                        : *damaged_.begin();
  const auto more = static_cast<std::int64_t>(bad.size()) - 1;
  return {.kind = Fact::carried_on, .name = std::move(what), .step = step, .number = more, .since = since};
}

}  // namespace nanquest
