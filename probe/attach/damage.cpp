// What a step did to weights, buffers, states and whatever else lives on: what is checked, and what is
// reported.
#include <utility>

#include "probe/attach/pages.h"
#include "probe/trace/op_facts.h"

namespace nanquest::attach {

void AttachSession::remember_damage(std::int64_t step) {
  if (machine_.reported(step) && check_.damaged() < tensors_.size()) note_damage(step);
}

std::string AttachSession::last_writer_of(const at::Tensor& memory) {
  if (!on_record() || !memory.defined() || !memory.has_storage()) return "";
  const c10::StorageImpl* const storage = memory.storage().unsafeGetStorageImpl();
  if (!rounds_->recorder().wrote(storage)) return "";
  const record::Step& recorded = *rounds_->now();
  // An op like detach_ writes by its schema alone: code outside of PyTorch wrote before it.
  const std::string& name = recorded.ops[recorded.slots[recorded.slots.find(storage)].writer].traits->name;
  return changes_metadata_only(name) ? "" : name;
}

Fact AttachSession::bad_after_update(Fact::Kind kind, std::string_view word, const NamedList& list) {
  const StateCheck::Names bad = check_.bad_now(word);
  if (bad.empty()) return {kind};
  const at::Tensor memory = list.named(bad.front().substr(word.size() + 1));
  return {.kind = kind,
          .name = bad.front(),
          .more = last_writer_of(memory),
          .number = static_cast<std::int64_t>(bad.size()) - 1};
}

Facts AttachSession::damage_of_update() {
  if (!history_.after_update(step()))
    return {bad_after_update(Fact::weight_bad, StateCheck::kParameter, tensors_.names().parameters)};
  const bool recorded = machine_.on_record();
  if (recorded) trace_.weights_finite = history_.measured();
  // A fused optimizer is passed overflowed gradients as memory to write, and skips the update itself.
  if (recorded && trace_.watched && machine_.gate() != Gate::scale_overflow &&
      rounds_->recorder().left_non_finite(trace_.update_begins, Phase::optimizer))
    return {{Fact::update_wrote_bad}};
  const auto moment = check_.bad_after(step(), StateCheck::kMoment);
  if (recorded && moment) trace_.states_finite = moment->empty();
  if (moment && !moment->empty())
    return {bad_after_update(Fact::moment_bad, StateCheck::kMoment, tensors_.names().states)};
  return {};
}

Facts AttachSession::damage_of_passes() {
  if (!on_record()) return {};
  const NamedTensors bad = living_.spoiled_by_passes(*rounds_, step(), left_out_, [&] { return computed(); });
  if (bad.empty()) return {};
  if (!left_out_) return {{Fact::buffer_spoiled, bad.front().first}};
  return {{.kind = Fact::stays_bad,
           .name = bad.front().first,
           .number = static_cast<std::int64_t>(bad.size()) - 1}};
}

void AttachSession::report_damage(StepAnswer& answer, bool update_made) {
  Facts what = update_made && !machine_.paused() ? damage_of_update() : Facts();
  if (machine_.reported()) return;
  // A buffer that became bad in the meantime (a mask) says nothing of an update.
  StateCheck::Names bad = what.empty() ? StateCheck::Names() : check_.bad_now(StateCheck::kParameter);
  if (!what.empty())
    for (std::string& moment : check_.bad_now(StateCheck::kMoment)) bad.push_back(std::move(moment));
  const bool by_update = !what.empty() && (check_.began_well() || !check_.since_beginning(bad));
  if (!by_update) what = damage_of_passes();
  if (what.empty()) return;
  hear(Hear::all);  // the gate may have found it
  if (machine_.reported()) return;
  answer.gate = Gate::non_finite;
  write_incident(answer.gate, what, answer, by_update);
}

void AttachSession::report_hidden_damage(StepAnswer& answer) {
  // An overflow that a loss scaler handles is no damage.
  if (!machine_.on_record() || !trace_.watched || machine_.gate() != Gate::ok || machine_.reported()) return;
  if (!rounds_->recorder().hides_damage()) return;
  Pages pages(*this, *rounds_->now(), facts_of_round());
  if (!check_.hides_new_overflow(pages.doc())) return;
  // Found, but nothing that the program computes is affected: no reason to stop it.
  write_incident(Gate::ok, {{Fact::hidden_overflow}}, answer, /*update_made=*/false, &pages);
  answer.stops = false;
}

Facts AttachSession::damage_between() {
  const NamedTensors bad = living_.spoiled_between(*rounds_, step(), trace_.update_ends);
  if (bad.empty()) return {};
  return {{.kind = Fact::spoiled_between,
           .name = bad.front().first,
           .more = last_writer_of(bad.front().second),
           .number = static_cast<std::int64_t>(bad.size()) - 1}};
}

void AttachSession::look_between(StepAnswer& answer) {
  if (!machine_.over() || machine_.paused()) return;
  if (machine_.reported()) return remember_damage();  // what was copied since then is its damage, too
  // Ranks have to name the same step, and what one of them does between its steps reaches the others in the
  // next.
  if (options_.probe.world_size > 1) return;
  if (!on_record() || ops_so_far() <= trace_.update_ends || trace_.update_ends == 0) return;
  if (std::exchange(trace_.looked_between, true)) return;
  const Facts what = damage_between();
  if (what.empty()) return;
  hear(Hear::all);  // if the step itself was bad, this is its damage
  if (machine_.reported()) return remember_damage();
  answer.step = step();
  answer.gate = Gate::non_finite;
  write_incident(answer.gate, what, answer, /*update_made=*/true);
  remember_damage();
}

Facts AttachSession::outlook() {
  Facts facts;
  if (writer_.count() == 0) return facts;
  safely("the end", [&] {
    const StateCheck::Names bad = check_.left_of(check_.bad_now());
    if (!bad.empty())
      facts.push_back({.kind = Fact::still_bad,
                       .name = bad.front(),
                       .number = static_cast<std::int64_t>(bad.size()) - 1});
    if (good_steps_ == 0) facts.push_back({.kind = Fact::never_updated, .number = steps_made()});
    if (loss_scale_ < first_scale_ && good_steps_ == 0)
      facts.push_back({.kind = Fact::scale_fell, .value = loss_scale_});
  });
  return facts;
}

}  // namespace nanquest::attach
