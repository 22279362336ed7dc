#include "replay/counterfactual/change.h"

#include <type_traits>

#include "replay/case/case.h"
#include "replay/trace/dtype_map.h"

namespace nanquest {

std::string precision_text(Precision precision) {
  return std::string(trace::precision_name(precision));
}

namespace {

/// Adds the edits of `more` for which `edit` has none.
void add(TraceEdit& edit, const TraceEdit& more) {
  edit.op_precision.insert(more.op_precision.begin(), more.op_precision.end());
  edit.module_precision.insert(more.module_precision.begin(), more.module_precision.end());
  edit.slot_edit.insert(more.slot_edit.begin(), more.slot_edit.end());
  edit.op_edit.insert(more.op_edit.begin(), more.op_edit.end());
  edit.output_edit.insert(more.output_edit.begin(), more.output_edit.end());
}

/// What distinguishes changes: two may have the same text for different ops.
std::string key_of(const Change& change) {
  std::string key = change.text;
  const TraceEdit& edit = change.options.edit;
  const auto add_keys = [&](char kind, const auto& edits) {
    for (const auto& [what, how] : edits) {
      key += kind;
      if constexpr (std::is_arithmetic_v<std::decay_t<decltype(what)>>)
        key += std::to_string(what);
      else
        key += what;
    }
  };
  add_keys('p', edit.op_precision);
  add_keys('m', edit.module_precision);
  add_keys('s', edit.slot_edit);
  add_keys('e', edit.op_edit);
  add_keys('o', edit.output_edit);
  return key;
}

}  // namespace

Change together(Change a, const Change& b) {
  if (a.text != b.text) a.text += "; " + b.text;
  a.edit.reset();
  a.otherwise.clear();
  add(a.options.edit, b.options.edit);
  if (a.placebo.empty() || b.placebo.empty()) {
    a.placebo.clear();
    return a;
  }
  if (a.placebo_text != b.placebo_text) a.placebo_text += "; " + b.placebo_text;
  add(a.placebo[0].edit, b.placebo[0].edit);
  return a;
}

TrialResult run_change(const Case& c, const Change& change) {
  const std::string key = key_of(change);
  const auto known = c.trials().find(key);
  if (known != c.trials().end()) return known->second;
  const TrialResult result = run_change(c, change.options);
  c.trials().emplace(key, result);
  return result;
}

TrialResult run_change(const Case& c, const RunOptions& options) {
  RunOptions decided_early = options;
  decided_early.stop_when_harmed = true;
  return c.result(c.run(decided_early));
}

}  // namespace nanquest
