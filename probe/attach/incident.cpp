#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "probe/attach/pages.h"
#include "probe/attach/region_graphs.h"
#include "probe/record/header.h"
#include "probe/record/tape_recording.h"
#include "probe/step/one_line.h"
#include "probe/step/ranks_of_step.h"
#include "probe/trace/culprit.h"
#include "probe/trace/state_since.h"

namespace nanquest::attach {

RoundFacts AttachSession::facts_of_round() {
  return {step(),
          loss_scale_,
          machine_.on_record() && trace_.samples ? *trace_.samples : sample_ids_,
          batch_,
          machine_.on_record() && trace_.weights_finite,
          machine_.on_record() && trace_.states_finite,
          trace_.outcome};
}

StepState AttachSession::state_of_step(const RoundFacts& facts) const {
  StepState state;
  state.step = facts.step;
  state.rank = options_.probe.rank;
  state.world_size = options_.probe.world_size;
  state.loss_scale = facts.loss_scale;
  state.config = options_.probe.config;
  state.sample_ids = facts.sample_ids;
  state.history = history_.tables();
  state.history_samples = history_.samples();
  return state;
}

AttachSession::Pages::Pages(AttachSession& session, record::Step& step, RoundFacts facts)
    : session_(session), step_(step), facts_(std::move(facts)), runs_(&step == session.rounds_->now()) {}

SnapshotDoc& AttachSession::Pages::doc() {
  // Loss and gradients of a step that is over are gone.
  if (!tables_)
    tables_.emplace(session_.rounds_->tables(
        step_, session_.tensors_.names(), runs_ ? session_.batch_ : facts_.batch,
        runs_ && !facts_.outcome.known ? session_.computed() : RoundResults{{}, {}, &facts_.outcome},
        named_));
  return tables_->recording.doc;
}

Recording* AttachSession::Pages::tables(Facts&) {
  SnapshotDoc& made = doc();
  fill_header(made, session_.state_of_step(facts_));
  tables_->finish(named_);
  add_lead();
  made.environment.insert(session_.notes_.begin(), session_.notes_.end());
  note_beginning(made, session_.check_.from_the_beginning());
  add_replicas(made, session_.replicas_.first, session_.replicas_.second);
  add_region_graphs(tables_->recording);
  if (made.culprit.op != kNone) arrived_by_ = nanquest::arrived_by(made);
  return &tables_->recording;
}

/// Ranks have to agree on their steps, and what one of them runs between two is its own.
void AttachSession::Pages::add_lead() {
  Rounds& rounds = *session_.rounds_;
  if (session_.options_.probe.world_size > 1) return;
  record::Step* before = runs_ ? rounds.recorder().lead() : nullptr;
  if (const Rounds::Kept* const kept = rounds.kept(step_.number - 1); kept && !before)
    before = rounds.of(*kept);
  if (!before) return;
  StepNames named;
  rounds.tables(*before, session_.tensors_.names(), {}, {}, named).lead_to(*tables_);
}

void AttachSession::Pages::complete(Facts& told) {
  const bool embeds = session_.options_.probe.frozen_weights == FrozenWeights::embed;
  if (!embeds) tables_->refer_to_files();
  std::string complaint;
  const auto tables_of = [&](record::Step& whole) {
    StepNames names_there;
    return session_.rounds_->tables(whole, session_.tensors_.names(), session_.batch_, session_.computed(),
                                    names_there);
  };
  tables_->recording.tape = tape_so_far(session_.rounds_->recorder(), held_, tables_of, embeds, complaint);
  add_text(told, one_line(complaint));
}

StateCheck::Blame AttachSession::blamed_so_far(Pages* pages, const Awaited* late) {
  StateCheck::Blame blame;
  if (pages && !late && trace_.watched)
    blame = check_.blame(pages->doc(),
                         [this](const std::string& name) { return tensors_.bad_in_memory_of(name); });
  std::optional<StepGraph> graph;
  blame.damage_matters = check_.damaged() == 0 || living_.damage_matters([&]() -> const StepGraph* {
    return pages ? &graph.emplace(pages->doc(), pages->step(), tensors_.names()) : nullptr;
  });
  return blame;
}

bool AttachSession::only_carries_on(StepAnswer& answer, std::int64_t number, bool update_made,
                                    const std::function<StateCheck::Blame()>& blamed) {
  if (writer_.count() + writer_.muted() == 0) return false;
  living_.take_over_names();
  const auto carried = check_.of_last_incident(check_.bad_now(), update_made, blamed);
  if (!carried) return false;
  if (update_made) check_.spread();
  if (writer_.carry_on()) answer.told.push_back(check_.carried_on(number, *carried, writer_.last_bad_step()));
  return true;
}

void AttachSession::overflow_carries_on(StepAnswer& answer, const Awaited& of, bool late) {
  if (check_.damaged() == 0 || machine_.reported(of.step)) return;
  std::optional<Pages> pages;
  if (!late && on_record()) pages.emplace(*this, *rounds_->now(), facts_of_round());
  if (only_carries_on(answer, of.step, /*update_made=*/false,
                      [&] { return blamed_so_far(pages ? &*pages : nullptr, late ? &of : nullptr); }))
    machine_.report(of.step);
}

void AttachSession::write_incident(Gate gate, const Facts& what, StepAnswer& answer, bool update_made,
                                   Pages* pages, const Awaited* late) {
  const std::int64_t number = late ? late->step : step();
  machine_.report(number);
  std::optional<Pages> made;
  const Rounds::Kept* const over = late && rounds_ ? rounds_->kept(late->round) : nullptr;
  if (over)
    pages = &made.emplace(*this, *rounds_->of(*over), over->facts);
  else if (!pages && number == step() && on_record())
    pages = &made.emplace(*this, *rounds_->now(), facts_of_round());
  std::optional<StateCheck::Blame> known;
  const auto blamed = [&] { return known ? *known : known.emplace(blamed_so_far(pages, late)); };
  if (only_carries_on(answer, number, update_made, blamed)) return;
  const StateCheck::Blame blame = update_made && !writer_.mutes_any() ? StateCheck::Blame() : blamed();
  if (const auto first = update_made ? std::nullopt : check_.repeats(number, blame)) {
    answer.incident = true;
    if (writer_.repeat())
      answer.told.push_back({.kind = Fact::one_more, .name = text_of(what), .step = number, .since = *first});
    return;
  }
  const bool muted = writer_.mutes(blame.op, blame.module);
  writer_.begin(number, muted);
  check_.incident(/*gate_failed=*/gate != Gate::ok && !update_made);
  if (!update_made) check_.was_bad(number, blame);
  Facts told = what;
  told.front().step = number;
  if (muted) {
    told.push_back({Fact::muted, blame.op, blame.module});
    return add(answer.told, writer_.end(gate, "", told));
  }
  answer.incident = true;
  if (options_.probe.level < Level::trace)
    told.push_back({Fact::level_keeps_none});
  else
    answer.file = write_file(gate, told, update_made, pages, late);
  add(told, writer_.end(gate, answer.file, told));
  add(answer.told, std::move(told));
}

std::string AttachSession::write_file(Gate gate, Facts& told, bool update_made, Pages* pages,
                                      const Awaited* late) {
  std::string spoiled;
  const Rounds::Kept* origin = round_that_spoiled(spoiled, update_made, late);
  if (!origin && !pages) {
    told.push_back({(late ? late->graph_ran : graph_ran_in_ == step()) ? Fact::graph_ran
                    : update_made                                      ? Fact::update_not_kept
                                                                       : Fact::nothing_recorded});
    add_text(told, rounds_->why_not());
    return "";
  }
  std::optional<Pages> earlier;
  if (origin) {
    told.push_back({.kind = Fact::update_spoiled, .name = spoiled, .since = origin->facts.step});
    pages = &earlier.emplace(*this, *rounds_->of(*origin), origin->facts);
  }
  const at::Tensor loss = (late ? late->losses : losses_).telling();
  std::string file = writer_.write({gate, loss.defined() && !holds_finite(loss)}, *pages, told);
  check_.arrived(pages->arrived_by());
  if (origin)
    rounds_->told(*origin);
  else if (!late)
    trace_.keeps = false;  // it has been reported
  return file;
}

const Rounds::Kept* AttachSession::round_that_spoiled(std::string& name, bool update_made,
                                                      const Awaited* late) {
  if (rounds_->keeps_none()) return nullptr;
  const Rounds::Kept* const over = late ? rounds_->kept(late->round) : nullptr;
  if (late && !over && !machine_.on_record()) return nullptr;
  const Names& names = tensors_.names();
  for (const NamedList* list : {&names.parameters, &names.states}) {
    // Before its update, an optimizer's state has harmed nothing in this step.
    if (list == &names.states && !update_made) continue;
    const std::string_view word = list == &names.states ? StateCheck::kMoment : StateCheck::kParameter;
    const StateCheck::Names bad = check_.bad_now(word);
    if (bad.empty()) continue;
    const std::string found = bad.front().substr(word.size() + 1);
    const at::Tensor tensor = list->named(found);
    if (!over && on_record() && tensor.defined()) {  // new weights in place of old ones
      const record::SlotIndex& slots = rounds_->now()->slots;
      const std::uint32_t slot = slots.find(tensor.storage().unsafeGetStorageImpl());
      if (slot != record::SlotIndex::kMissing && slots[slot].produced) continue;
    }
    // Was it so when this step began?
    if (over || machine_.on_record()) {
      const at::Tensor first = rounds_->first_value(tensor, over);
      if (first.defined() && all_finite(first)) continue;
    }
    name = found;
    return rounds_->round_that_spoiled(
        tensor, over ? over->number : rounds_->number() + (machine_.on_record() ? 0 : 1),
        list == &names.parameters ? &RoundFacts::weights_finite : &RoundFacts::states_finite);
  }
  return nullptr;
}

bool AttachSession::on_record() {
  return machine_.on_record() && rounds_->now();
}

bool AttachSession::record_step() {
  if (machine_.off() || options_.probe.level < Level::trace) return false;
  options_.record_steps.insert(machine_.coming());
  return true;
}

void AttachSession::write_recording(StepAnswer& answer) {
  if (!on_record() || options_.record_steps.erase(step()) == 0 || writer_.last_step() == step()) return;
  Pages pages(*this, *rounds_->now(), facts_of_round());
  const std::string file = writer_.record(step(), machine_.gate(), pages, answer.told);
  if (!file.empty()) answer.file = file;
}

}  // namespace nanquest::attach
