#include <ATen/ATen.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "probe/attach/region_graphs.h"
#include "probe/attach/session.h"
#include "probe/record/header.h"
#include "probe/snapshot/run_dir.h"
#include "probe/step/one_line.h"
#include "probe/step/ranks_of_step.h"
#include "probe/trace/culprit.h"

namespace nanquest::attach {
RoundFacts AttachSession::facts_of_round() {
  return {step(),
          loss_scale_,
          sample_ids_,
          batch_,
          trace_ && trace_->weights_finite,
          trace_ && trace_->states_finite};
}

StepState AttachSession::state_of_step(const RoundFacts& facts) const {
  StepState state;
  state.step = facts.step;
  state.rank = options_.probe.rank;
  state.world_size = options_.probe.world_size;
  state.loss_scale = facts.loss_scale;
  state.config = options_.probe.config;
  state.sample_ids = facts.sample_ids;
  state.history = record_.tables();
  state.history_samples = record_.samples();
  return state;
}

Status AttachSession::write_round(record::Step& step, const RoundFacts& facts, Gate gate,
                                  const std::string& path, Told& told, bool elects) {
  // Loss and gradients of a step that is over are gone.
  const bool runs = &step == rounds_->now();
  StepNames named;
  StepTables tables =
      rounds_->tables(step, names_, runs ? batch_ : facts.batch, runs ? results() : RoundResults(), named);
  SnapshotDoc& doc = tables.recording.doc;
  fill_header(doc, state_of_step(facts));
  doc.gate = gate;
  tables.finish(named);
  add_process_groups(doc);
  doc.environment.insert(notes_.begin(), notes_.end());
  add_replicas(doc, replicas_.first, replicas_.second);
  add_region_graphs(tables.recording);
  if (doc.culprit.op != kNone) told = {one_line(describe_culprit(doc)), arrived_by(doc), "", ""};
  if (elects && election_.needed()) {
    const Seat seat = election_.hold(facts.step, row_of(doc, loss_is_bad()));
    told.left_to = seat.line;
    if (!seat.whole) return {};
  }
  const bool embeds = options_.probe.frozen_weights == FrozenWeights::embed;
  if (!embeds) tables.refer_to_files();
  std::unique_ptr<record::Step> held;
  std::string complaint;
  const auto tables_of = [&](record::Step& whole) {
    StepNames names_there;
    return rounds_->tables(whole, names_, batch_, results(), names_there);
  };
  tables.recording.tape = tape_so_far(rounds_->recorder(), held, tables_of, embeds, complaint);
  told.no_tape = one_line(complaint);
  std::uint64_t bytes = 0;
  const auto count = [&](const NamedTensors& all) {
    for (const auto& [name, data] : all) bytes += data.defined() ? data.nbytes() : 0;
  };
  count(tables.recording.data);
  if (tables.recording.tape) count(tables.recording.tape->data);
  if (Status room = make_room(bytes); !room) return room;
  return write_snapshot(tables.recording, path);
}

bool AttachSession::loss_is_bad() const {
  const at::Tensor loss = losses_.telling();
  return loss.defined() && !holds_finite(loss);
}

Status AttachSession::make_room(std::uint64_t bytes) {
  if (!budget_.bounded()) return {};
  // Tables, and what a file is more than its data.
  const auto go = budget_.to_go(bytes + bytes / 16 + (std::uint64_t{256} << 10));
  if (!go) return go.error();
  for (const std::string& path : *go) log_.removed(path, budget_.remove(path), "max_disk: for a newer file");
  return {};
}

void AttachSession::keep_in_budget(const std::string& path, FileBudget::Kind kind, std::string& line) {
  budget_.wrote(path, kind);
  if (!budget_.over()) return;
  // It took more than was thought.
  if (const Status room = make_room(0); room && !budget_.over()) return;
  log_.removed(path, budget_.remove(path), "max_disk: it is larger than what is left");
  append(line, "snapshot removed: it is larger than what max_disk leaves (give a larger --max-disk)");
}

Incidents::Names AttachSession::non_finite_state() {
  return Incidents::non_finite(state_pass_,
                               {names_.parameters.living(), names_.buffers.living(), names_.states.living()});
}

std::string AttachSession::bad_in_memory_of(const std::string& name) {
  for (const NamedList* list : {&names_.parameters, &names_.buffers, &names_.states})
    for (std::size_t i = 0; i < list->size(); ++i) {
      if (list->name(i) != name) continue;
      if (!all_finite(list->tensor(i).lock())) return name;
      for (std::size_t j = 0; j < list->size(); ++j)
        if (list->tensor(j).lies_in(list->tensor(i).address()) && !all_finite(list->tensor(j).lock()))
          return list->name(j);
      return name;
    }
  return name;
}

AttachSession::Blame AttachSession::blamed_so_far() {
  if (!trace_ || !trace_->watched || !on_record()) return {};
  StepNames named;
  StepTables tables = rounds_->tables(*rounds_->now(), names_, batch_, results(), named);
  const SnapshotDoc& doc = tables.recording.doc;
  if (!find_culprit(tables.recording.doc)) return {};
  Blame blame{true, Incidents::name_of(doc.culprit.origin, bad_in_memory_of(doc.culprit.tensor_name)),
              arrived_by(doc)};
  if (doc.culprit.op == kNone) return blame;
  const OpRow& op = doc.ops[static_cast<std::size_t>(doc.culprit.op)];
  blame.op = op.name;
  if (op.module != kNone) blame.module = doc.modules[static_cast<std::size_t>(op.module)].path;
  return blame;
}

std::optional<Incidents::Names> AttachSession::of_last_incident(const Incidents::Names& bad,
                                                                bool update_made) {
  const bool by_state = incidents_.carries_on(bad), arrives = !incidents_.arrives_by().empty();
  if (update_made) {
    // The step was good before its update: what that spoiled is news.
    const bool known =
        std::all_of(bad.begin(), bad.end(), [&](const auto& name) { return incidents_.is_damaged(name); });
    return by_state && known ? std::optional(bad) : std::nullopt;
  }
  const bool by_damage = by_state && !incidents_.was_harmless();
  if (!by_damage && !arrives) return std::nullopt;
  const Blame blame = blamed_so_far();
  if (by_damage && (!blame.known || incidents_.is_damaged(blame.state))) return bad;
  if (arrives && blame.known && blame.arrived_by == incidents_.arrives_by()) return Incidents::Names();
  return std::nullopt;
}

void AttachSession::write_incident(Gate gate, const std::string& what, StepAnswer& answer, bool update_made) {
  reported_step_ = step();
  const bool first = incidents_.count() + incidents_.muted() == 0;
  const auto bad = first ? Incidents::Names() : non_finite_state();
  if (const auto carried = of_last_incident(bad, update_made)) {
    append(answer.summary, incidents_.carry_on(step(), *carried));
    return;
  }
  const bool wake = !first && step() - incidents_.last_step() <= options_.watch_after;
  const Blame blame = options_.muted.empty() ? Blame() : blamed_so_far();
  const bool muted = options_.muted.count({blame.op, blame.module}) > 0;
  incidents_.begin(step(), /*gate_failed=*/gate != Gate::ok && !update_made, muted);
  if (muted) {
    append(answer.summary, incidents_.end(gate, "",
                                          "step " + std::to_string(step()) + ": " + what + "; " + blame.op +
                                              " in " + blame.module + " is muted"));
    return;
  }
  answer.incident = true;
  answer.summary = "step " + std::to_string(step()) + ": " + what;
  std::string why_not;
  if (options_.probe.level < Level::trace)
    why_not =
        "level guard keeps no trace of the step; run it again with --level trace for a file that replays";
  else if (incidents_.may_write(why_not))
    write_file(gate, answer, update_made);
  if (!answer.file.empty()) {
    keep_in_budget(answer.file, wake ? FileBudget::Kind::wake : FileBudget::Kind::incident, answer.summary);
    if (!std::filesystem::exists(answer.file)) answer.file.clear();
  }
  append(answer.summary, why_not);
  append(answer.summary, incidents_.end(gate, answer.file, answer.summary));
}

void AttachSession::write_file(Gate gate, StepAnswer& answer, bool update_made) {
  Told told;
  std::string spoiled;
  const KeptRound* origin = round_that_spoiled(spoiled, update_made);
  if (!origin && !on_record()) {
    append(answer.summary,
           graph_ran_in_ == step()
               ? "a captured graph ran in this step, which nobody can look into: run the program without "
                 "graphs for a file that replays"
           : update_made
               ? "no trace of this step was kept (its gradients were finite; level watch keeps all)"
               : "nothing was on record: no module was called to begin this step (where none ever is, the "
                 "record begins with the second step)");
    append(answer.summary, rounds_->why_not());
    return;
  }
  const std::int64_t of = origin ? origin->facts.step : step();
  const std::string path = free_incident_path(options_.probe.run_dir, of, options_.probe.rank);
  Status written;
  if (origin) {
    append(answer.summary, "the update of step " + std::to_string(of) + " spoiled " + spoiled);
    written = write_round(*rounds_->of(*origin), origin->facts, gate, path, told, /*elects=*/true);
    rounds_->told(*origin);
  } else {
    written = write_round(*rounds_->now(), facts_of_round(), gate, path, told, /*elects=*/true);
    trace_->keeps = false;  // it is told
  }
  append(answer.summary, told.culprit);
  append(answer.summary, told.no_tape);
  incidents_.arrived(told.arrived_by);
  if (!told.left_to.empty())
    append(answer.summary, told.left_to);
  else if (written)
    answer.file = path;
  else
    append(answer.summary, "snapshot not written: " + one_line(written.error().text()));
}

const KeptRound* AttachSession::round_that_spoiled(std::string& name, bool update_made) {
  if (rounds_->keeps_none()) return nullptr;
  for (const NamedList* list : {&names_.parameters, &names_.states}) {
    // Before its update, what an optimizer keeps has harmed nobody in this step.
    if (list == &names_.states && !update_made) continue;
    const NamedTensors all = list->living();
    const std::string bad = first_non_finite(state_pass_, all);
    if (bad.empty()) continue;
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.first == bad; });
    // Was it so when this step began?
    if (trace_) {
      const at::Tensor first = rounds_->first_value(found->second);
      if (first.defined() && all_finite(first)) continue;
    }
    name = bad;
    return rounds_->round_that_spoiled(
        found->second, trace_.has_value(),
        list == &names_.parameters ? &RoundFacts::weights_finite : &RoundFacts::states_finite);
  }
  return nullptr;
}

bool AttachSession::on_record() {
  return trace_ && rounds_->now();
}

bool AttachSession::record_step() {
  if (off_ || options_.probe.level < Level::trace) return false;
  options_.record_steps.insert(steps_.made() + offset_);
  return true;
}

void AttachSession::write_recording(StepAnswer& answer) {
  if (!on_record() || options_.record_steps.erase(step()) == 0 || incidents_.last_step() == step()) return;
  std::error_code error;
  std::filesystem::create_directories(recordings_dir(options_.probe.run_dir), error);
  Told told;
  const std::string path = free_recording_path(options_.probe.run_dir, step(), options_.probe.rank);
  const Status written =
      write_round(*rounds_->now(), facts_of_round(), trace_->gate, path, told, /*elects=*/false);
  const std::string what =
      written ? "recorded as asked" : "not recorded: " + one_line(written.error().text());
  append(answer.summary, "step " + std::to_string(step()) + ": " + what);
  if (!written) return;
  append(answer.summary, told.culprit);
  append(answer.summary, told.no_tape);
  answer.file = path;
  keep_in_budget(path, FileBudget::Kind::recording, answer.summary);
}

}  // namespace nanquest::attach
