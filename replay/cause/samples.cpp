#include "replay/cause/samples.h"

#include <algorithm>
#include <map>

#include "replay/counterfactual/change.h"
#include "replay/lab/ddmin.h"

namespace nanquest {
namespace {

std::vector<std::int64_t> all_but(std::int64_t batch, std::int64_t donor) {
  std::vector<std::int64_t> rest;
  for (std::int64_t s = 0; s < batch; ++s)
    if (s != donor) rest.push_back(s);
  return rest;
}

bool finite_with(const Case& c, const std::vector<std::int64_t>& samples, std::int64_t donor) {
  const auto change = replace_samples(c, samples, donor);
  return c.has_time() && change && run_change(c, change->options) == TrialResult::finite;
}

/// Replacing as many other samples must not help.
void hold_against_others(const Case& c, SampleBisection& b) {
  std::vector<std::int64_t> others = all_but(b.batch, b.donor);
  std::erase_if(others, [&](std::int64_t s) {
    return std::find(b.poison.begin(), b.poison.end(), s) != b.poison.end();
  });
  const auto change = replace_samples(c, b.poison, b.donor);
  if (!change) return;
  b.tried.push_back({change->text, ChangeKind::data, TrialResult::finite});
  others.resize(std::min(others.size(), b.poison.size()));
  const auto placebo = replace_samples(c, others, b.donor);
  if (others.empty() || !placebo || !c.has_time()) return;
  const TrialResult result = run_change(c, placebo->options);
  ++b.runs;
  b.tried.push_back({placebo->text + " instead", ChangeKind::placebo, result});
  if (result != TrialResult::finite) return;
  b.poison.clear();
  b.note = "the step is finite with other samples replaced as well: it does not hang on particular samples";
}

bool half_precision(const SnapshotDoc& doc) {
  for (const TensorRow& t : doc.tensors)
    if (dtype_is_float(t.dtype) && dtype_size(t.dtype) <= 2) return true;
  return false;
}

}  // namespace

SampleBisection bisect_samples(const Case& c, int max_runs) {
  SampleBisection b;
  b.batch = batch_size(c.doc());
  b.known = b.batch >= 2 && replace_samples(c, {1}, 0).has_value();
  if (!b.known) {
    b.note = "the batch has no samples that can be exchanged one by one";
    return b;
  }
  // A few donors spread over the batch are enough: if the failure depends on few samples, most of them are
  // healthy.
  const std::int64_t donors = std::min<std::int64_t>({b.batch, 8, max_runs / 2});
  for (std::int64_t i = 0; i < donors && b.donor < 0; ++i, ++b.runs)
    if (const std::int64_t d = i * b.batch / donors; finite_with(c, all_but(b.batch, d), d)) b.donor = d;
  if (b.donor < 0 && c.has_bad_as_recorded()) return b;
  if (b.donor < 0) {
    b.note =
        "copies of any single sample in the place of all fail as well (of those that were tried): which "
        "samples are needed can't be told this way";
    return b;
  }
  int calls = 0;
  b.poison = ddmin<std::int64_t>(
      all_but(b.batch, b.donor),
      [&](const std::vector<std::int64_t>& s) { return finite_with(c, s, b.donor); }, max_runs - b.runs,
      &calls);
  b.runs += calls;
  hold_against_others(c, b);
  return b;
}

ModuleBisection bisect_modules(const Case& c, int max_runs) {
  ModuleBisection b;
  const Precision wide = wider(c, half_precision(c.doc()));
  b.precision = precision_text(wide);
  std::map<std::string, std::vector<std::int32_t>> ops;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(c.doc().ops.size()); ++i)
    if (c.doc().ops[i].written_count > 0) ops[c.module_of(i)].push_back(i);
  const auto finite = [&](const std::vector<std::string>& set) {
    RunOptions options;
    for (const std::string& path : set)
      for (std::int32_t op : ops[path]) options.edit.op_precision[op] = wide;
    return run_change(c, options) == TrialResult::finite;
  };
  std::vector<std::string> all;
  all.reserve(ops.size());
  for (const auto& [path, rows] : ops) all.push_back(path);
  b.runs = 1;
  b.finite_with_all = finite(all);
  if (!b.finite_with_all) return b;
  int calls = 0;
  b.modules = ddmin<std::string>(all, finite, max_runs - 1, &calls);
  b.runs += calls;
  return b;
}

}  // namespace nanquest
