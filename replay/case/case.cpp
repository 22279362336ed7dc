#include "replay/case/case.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "probe/observe/op_traits.h"
#include "probe/trace/op_numbers.h"
#include "probe/trace/regions.h"
#include "replay/case/values.h"
#include "replay/lab/call_again.h"
#include "replay/verdict/sentences.h"

namespace nanquest {
namespace {

bool wrote_bad(const OpOutcome& outcome) {
  return std::any_of(outcome.written.begin(), outcome.written.end(),
                     [](const StatsRow& s) { return s.non_finite() > 0; });
}

/// The number of calls in an op on lists whose lists belong together element by element, unlike those of cat
/// or stack; 0 for every other op.
std::size_t calls_on_lists(const OpRow& op, const OpValues& values) {
  if (op.name.find("_foreach_") == std::string::npos && !op.name.starts_with("aten::_fused_")) return 0;
  if (values.arguments.empty() || !values.arguments[0].isTensorList()) return 0;
  const std::size_t n = values.arguments[0].toTensorVector().size();
  return n > 0 && values.outputs.size() % n == 0 ? n : 0;
}

/// Splits the lists of an op like _foreach_mul into its single calls; every other op is one call. Lists that
/// are as long as the first one belong to it, whatever they hold; a fused update writes several, one after
/// the other.
std::vector<OpValues> calls_of(const OpRow& op, OpValues whole) {
  const std::size_t n = calls_on_lists(op, whole);
  if (n == 0) return {std::move(whole)};
  std::vector<OpValues> calls(n);
  for (std::size_t k = 0; k < n; ++k) {
    for (const c10::IValue& argument : whole.arguments)
      calls[k].arguments.push_back(
          argument.isList() && argument.toListRef().size() == n ? argument.toListRef()[k] : argument);
    for (std::size_t at = k; at < whole.outputs.size(); at += n)
      calls[k].outputs.push_back(whole.outputs[at]);
  }
  return calls;
}

/// The storage in which the harm came in, for an origin other than an op; none if it is not in the trace.
SlotId guilty_slot(const SnapshotDoc& doc) {
  const std::string& name = doc.culprit.tensor_name;
  for (const auto* group : {&doc.batch, &doc.parameters, &doc.buffers, &doc.optimizer})
    for (const NamedTensor& t : *group)
      if (t.name == name && t.slot != kNone) return SlotId{t.slot};
  for (const SlotId slot : ids_of<Slot>(doc))
    if (!name.empty() && get(doc, slot).name == name) return slot;
  return {};
}

}  // namespace

at::Tensor OpValues::bad_output() const {
  for (const at::Tensor& t : outputs)
    if (!all_finite(t)) return t;
  return outputs.empty() ? at::Tensor() : outputs.front();
}

Case::Case(SnapshotDoc doc, Run run, Read read)
    : doc_(std::make_shared<const SnapshotDoc>(std::move(doc))),
      graph_(*doc_),
      run_(std::move(run)),
      read_(std::move(read)),
      op_(culprit().op) {
  if (op_ != kNone || culprit().origin == "op") return;
  const SlotId slot = guilty_slot(*doc_);
  if (slot && !graph_.reads(slot).empty()) op_ = graph_.reads(slot).front().op.row();
}

const OpRow* Case::row(std::int32_t op) const {
  return find_row(*doc_, OpId{op});
}

const RunResult& Case::whole(Precision precision) const {
  auto it = whole_.find(precision);
  if (it == whole_.end()) {
    RunOptions options;
    options.precision = precision;
    it = whole_.emplace(precision, run_(options)).first;
  }
  return it->second;
}

bool Case::healthy(const RunResult& run) const {
  if (!harm_) harm_ = std::make_shared<const Harm>(graph_, whole(Precision::as_recorded));
  return harm_->undone_by(run);
}

TrialResult Case::result(const RunResult& run) const {
  if (run.failed > whole(Precision::as_recorded).failed) return TrialResult::failed;
  if (healthy(run)) return TrialResult::finite;
  const bool kept = std::any_of(run.births.begin(), run.births.end(), [&](std::int32_t op) {
    return run.ops[static_cast<std::size_t>(op)].kept_format;
  });
  const RunResult& recorded = whole(Precision::as_recorded);
  bool as_recorded = false;
  for (const OpId op : graph_.ops())
    as_recorded =
        as_recorded || (bad_as_recorded(run, op) && (op.row() == op_ || !bad_as_recorded(recorded, op)));
  return kept || as_recorded ? TrialResult::failed : TrialResult::non_finite;
}

bool Case::has_bad_as_recorded() const {
  const RunResult& run = whole(Precision::as_recorded);
  return std::any_of(run.ops.begin(), run.ops.end(),
                     [](const OpOutcome& outcome) { return outcome.substituted && wrote_bad(outcome); });
}

bool Case::bad_as_recorded(const RunResult& run, OpId op) const {
  if (op.index() >= run.ops.size()) return false;
  const OpOutcome& outcome = run.ops[op.index()];
  if (!outcome.substituted || !wrote_bad(outcome)) return false;
  const auto reads = graph_.reads(op);
  return std::none_of(reads.begin(), reads.end(), [&](TensorId row) {
    const OpId maker = graph_.producer(row, op);
    return maker ? maker.index() < run.ops.size() && wrote_bad(run.ops[maker.index()]) : graph_.bad(row);
  });
}

Case Case::with(SnapshotDoc doc) const {
  Case made(std::move(doc), run_, read_);
  made.blame_ = blame_;
  made.lab_ = lab_;
  made.twin_ = twin_;
  made.trials_ = trials_;
  made.whole_ = whole_;
  return made;
}

Case Case::changed(const TraceEdit& edit, SnapshotDoc doc) const {
  const auto both = [run = run_, edit](const RunOptions& options) {
    RunOptions more = options;
    more.edit = edit.then(options.edit);
    return run(more);
  };
  Case made(std::move(doc), both, read_);
  made.lab_ = lab_;
  return made;
}

const OpValues& Case::values(std::int32_t op) const {
  static const OpValues none;
  const std::vector<OpValues>& all = calls(op);
  if (all.empty()) return none;
  const bool alike = op == op_ || (focus_ > 0 && all.size() == calls(op_).size());
  return all[alike && focus_ < all.size() ? focus_ : 0];
}

const std::vector<OpValues>& Case::calls(std::int32_t op) const {
  auto it = values_.find(op);
  if (it != values_.end()) return it->second;
  std::vector<OpValues>& calls = values_[op];
  if (!row(op)) return calls;
  OpValues whole;
  bool ran = false;
  RunOptions options;
  options.scan = false;
  options.stop_after = op;
  options.edit.op_edit[op] = [&](std::vector<c10::IValue>& stack) {
    whole.arguments.clear();
    for (const c10::IValue& v : stack) whole.arguments.push_back(copy_of(v));
    return false;
  };
  options.on_op = [&](std::int32_t at, const std::vector<at::Tensor>& outputs) {
    if (at != op) return;
    ran = true;
    for (const at::Tensor& t : outputs) whole.outputs.push_back(t.defined() ? t.detach().clone() : t);
  };
  std::vector<at::Tensor> written;
  options.edit.output_edit[op] = [&](std::vector<at::Tensor>& outputs) {
    for (const at::Tensor& t : outputs) written.push_back(t.defined() ? t.detach().clone() : t);
  };
  run_(options);
  if (whole.outputs.empty()) {
    whole.outputs = std::move(written);
  } else if (row(op)->name == kCompiledRegion) {
    // The last of the rows that it wrote are its arguments.
    const auto arguments = std::min(region_call(*doc_, *row(op)).written.size(), written.size());
    whole.outputs.insert(whole.outputs.end(), written.end() - static_cast<std::ptrdiff_t>(arguments),
                         written.end());
  }
  if (ran) calls = calls_of(*row(op), std::move(whole));
  return calls;
}

std::vector<Case::TensorArgument> Case::tensor_arguments(std::int32_t op) const {
  std::vector<TensorArgument> found;
  if (!row(op)) return found;
  for (const TraceGraph::Argument& argument : graph_.arguments(OpId{op}))
    found.push_back({argument.position, argument.row.row()});
  return found;
}

std::int32_t Case::producer(std::int32_t tensor, std::int32_t before_op) const {
  return graph_.producer(TensorId{tensor}, OpId{before_op}).row();
}

std::vector<std::int32_t> Case::readers(std::int32_t op) const {
  std::vector<std::int32_t> found;
  if (!row(op)) return found;
  for (const OpId reader : graph_.consumers(OpId{op})) found.push_back(reader.row());
  return found;
}

std::set<std::int32_t> Case::readers_within(std::int32_t op, int hops) const {
  std::set<std::int32_t> found, last = {op};
  for (int i = 0; i < hops; ++i) {
    std::set<std::int32_t> next;
    for (const std::int32_t from : last)
      for (const std::int32_t to : readers(from))
        if (row(to)->phase == row(op)->phase && found.insert(to).second) next.insert(to);
    last = std::move(next);
  }
  return found;
}

std::int32_t Case::forward_of(std::int32_t op) const {
  return row(op) ? graph_.forward_of(OpId{op}).row() : kNone;
}

std::string Case::module_of(std::int32_t op) const {
  return row(op) ? std::string(graph_.module_of(OpId{op})) : "";
}

std::string Case::op_text(std::int32_t op) const {
  const OpRow* r = row(op);
  return r ? op_words(r->name, module_of(op)) : "no op";
}

std::string Case::op_with_number(std::int32_t op) const {
  const OpRow* r = row(op);
  return r ? op_words(r->name, module_of(op), op) : "no op";
}

bool Case::is_one_of(std::int32_t op, std::initializer_list<std::string_view> names) const {
  return row(op) && std::find(names.begin(), names.end(), plain_name(*row(op))) != names.end();
}

std::string Case::slot_text(std::int32_t slot) const {
  const std::string& name = doc_->slots[static_cast<std::size_t>(slot)].name;
  return name.empty() ? "storage " + std::to_string(slot) : name;
}

std::string plain_name(const OpRow& op) {
  return std::string(plain_name(std::string_view(op.name)));
}

}  // namespace nanquest
