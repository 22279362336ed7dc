#include "replay/cause/case.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace nanquest {
namespace {

/// Number of tokens of the argument value that starts at `i` (a list holds the values that follow it).
std::int32_t token_length(const std::vector<ArgRow>& args, std::int32_t i, std::int32_t end) {
  if (i >= end) return 0;
  std::int32_t length = 1;
  if (args[i].kind == ArgKind::list)
    for (std::int64_t k = 0; k < args[i].integer && i + length < end; ++k)
      length += token_length(args, i + length, end);
  return length;
}

/// A copy that later ops can't write into; lists of tensors are copied element by element.
c10::IValue copy_of(const c10::IValue& value) {
  if (value.isTensor())
    return value.toTensor().defined() ? c10::IValue(value.toTensor().detach().clone()) : value;
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& t : value.toTensorVector()) list.push_back(t.defined() ? t.detach().clone() : t);
    return list;
  }
  return value;
}

/// The storage that the harm came in with, for an origin other than an op.
std::int32_t guilty_slot(const SnapshotDoc& doc) {
  const std::string& name = doc.culprit.tensor_name;
  for (const auto* group : {&doc.batch, &doc.parameters, &doc.buffers, &doc.optimizer})
    for (const NamedTensor& t : *group)
      if (t.name == name && t.slot != kNone) return t.slot;
  for (std::size_t i = 0; i < doc.slots.size(); ++i)
    if (!name.empty() && doc.slots[i].name == name) return static_cast<std::int32_t>(i);
  return kNone;
}

}  // namespace

std::int32_t first_reader(const SnapshotDoc& doc, std::int32_t slot) {
  if (slot == kNone) return kNone;
  for (std::size_t i = 0; i < doc.ops.size(); ++i)
    for (std::int32_t a = 0; a < doc.ops[i].arg_count; ++a) {
      const ArgRow& arg = doc.args[doc.ops[i].first_arg + a];
      if (arg.kind == ArgKind::tensor && arg.tensor != kNone && doc.tensors[arg.tensor].slot == slot)
        return static_cast<std::int32_t>(i);
    }
  return kNone;
}

Case::Case(SnapshotDoc doc, Run run, Read read)
    : doc_(std::move(doc)), run_(std::move(run)), read_(std::move(read)) {
  writers_.resize(doc_.slots.size());
  for (std::size_t i = 0; i < doc_.ops.size(); ++i)
    for (std::int32_t w = 0; w < doc_.ops[i].written_count; ++w) {
      const std::int32_t slot = doc_.tensors[doc_.written[doc_.ops[i].first_written + w]].slot;
      if (slot != kNone && (writers_[slot].empty() || writers_[slot].back() != static_cast<std::int32_t>(i)))
        writers_[slot].push_back(static_cast<std::int32_t>(i));
    }
  op_ = doc_.culprit.op;
  if (op_ == kNone && doc_.culprit.origin != "op") op_ = first_reader(doc_, guilty_slot(doc_));
}

const OpRow* Case::row(std::int32_t op) const {
  return op >= 0 && op < static_cast<std::int32_t>(doc_.ops.size()) ? &doc_.ops[op] : nullptr;
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
  if (!run.finite()) return false;
  // Beside NaN, a log-softmax may still hold the -Inf of masked entries: those were meant.
  const bool minus_inf_matters = doc_.culprit.value != "nan" && doc_.culprit.value != "mixed";
  const auto clean = [&](std::size_t op) {
    return std::all_of(run.ops[op].written.begin(), run.ops[op].written.end(), [&](const StatsRow& s) {
      return s.nan == 0 && s.pos_inf == 0 && (s.neg_inf == 0 || !minus_inf_matters);
    });
  };
  if (op_ != kNone && static_cast<std::size_t>(op_) < run.ops.size() && !clean(static_cast<std::size_t>(op_)))
    return false;
  if (doc_.culprit.phase == Phase::optimizer)
    for (std::size_t i = 0; i < run.ops.size() && i < doc_.ops.size(); ++i)
      if (doc_.ops[i].phase == Phase::optimizer && !(doc_.ops[i].flags & kOpUninitialised) && !clean(i))
        return false;
  return true;
}

const OpValues& Case::values(std::int32_t op) const {
  auto it = values_.find(op);
  if (it != values_.end()) return it->second;
  OpValues& values = values_[op];
  if (!row(op)) return values;
  RunOptions options;
  options.scan = false;
  options.stop_after = op;
  options.edit.op_edit[op] = [&values](std::vector<c10::IValue>& stack) {
    values.arguments.clear();
    for (const c10::IValue& v : stack) values.arguments.push_back(copy_of(v));
    return false;
  };
  options.on_op = [&values, op](std::int32_t ran, const std::vector<at::Tensor>& outputs) {
    if (ran != op) return;
    for (const at::Tensor& t : outputs) values.outputs.push_back(t.defined() ? t.detach().clone() : t);
  };
  run_(options);
  return values;
}

std::vector<Case::TensorArgument> Case::tensor_arguments(std::int32_t op) const {
  std::vector<TensorArgument> found;
  const OpRow* r = row(op);
  if (!r) return found;
  const std::int32_t end = r->first_arg + r->arg_count;
  int position = 0;
  for (std::int32_t i = r->first_arg; i < end; ++position) {
    const std::int32_t length = token_length(doc_.args, i, end);
    for (std::int32_t k = i; k < i + length; ++k)
      if (doc_.args[k].kind == ArgKind::tensor && doc_.args[k].tensor != kNone)
        found.push_back({position, doc_.args[k].tensor});
    i += length;
  }
  return found;
}

bool Case::writes(const OpRow& op, std::int32_t slot) const {
  for (std::int32_t w = 0; w < op.written_count; ++w)
    if (doc_.tensors[doc_.written[op.first_written + w]].slot == slot) return true;
  return false;
}

std::int32_t Case::producer(std::int32_t tensor, std::int32_t before_op) const {
  if (tensor == kNone || doc_.tensors[tensor].slot == kNone) return kNone;
  const std::vector<std::int32_t>& writers = writers_[doc_.tensors[tensor].slot];
  const auto after = std::lower_bound(writers.begin(), writers.end(), before_op);
  return after == writers.begin() ? kNone : *(after - 1);
}

std::vector<std::int32_t> Case::readers(std::int32_t op) const {
  std::vector<std::int32_t> found;
  const OpRow* r = row(op);
  if (!r) return found;
  for (std::int32_t w = 0; w < r->written_count; ++w) {
    const std::int32_t slot = doc_.tensors[doc_.written[r->first_written + w]].slot;
    for (std::int32_t i = op + 1; i < static_cast<std::int32_t>(doc_.ops.size()); ++i) {
      for (const TensorArgument& a : tensor_arguments(i))
        if (doc_.tensors[a.tensor].slot == slot) {
          found.push_back(i);
          break;
        }
      if (writes(doc_.ops[i], slot)) break;
    }
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::int32_t Case::forward_of(std::int32_t op) const {
  const OpRow* r = row(op);
  if (!r || r->phase != Phase::backward) return kNone;
  if (r->forward_op != kNone) return r->forward_op;
  if (r->sequence < 0) return kNone;
  std::int32_t found = kNone;
  for (std::int32_t i = 0; i < op; ++i)
    if (doc_.ops[i].phase == Phase::forward && doc_.ops[i].sequence == r->sequence &&
        doc_.ops[i].micro_batch == r->micro_batch) {
      if (found != kNone) return kNone;  // a sequence number is only a peek: two candidates decide nothing
      found = i;
    }
  return found;
}

std::string Case::module_of(std::int32_t op) const {
  const OpRow* r = row(op);
  if (r && r->module == kNone) r = row(forward_of(op));
  return r && r->module != kNone ? doc_.modules[r->module].path : std::string();
}

std::string Case::op_text(std::int32_t op) const {
  const OpRow* r = row(op);
  if (!r) return "no op";
  const std::string module = module_of(op);
  return r->name + (module.empty() ? "" : " in " + module);
}

}  // namespace nanquest
