#include "replay/cause/ruinous_rate.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "probe/trace/names.h"
#include "replay/cause/precision.h"
#include "replay/cause/twin_facts.h"
#include "replay/history/columns.h"
#include "replay/verdict/numbers.h"

namespace nanquest {
namespace {

/// With the same weights, inputs that are this many times larger than on a healthy batch are the batch's.
constexpr double kByBatch = 16;

/// By which factor each layer's weights are to be multiplied to have the norm again that they had before the
/// update of `step`: those that are at least 8 times larger now, by that update or by what followed from it.
std::map<std::string, double> factors_back(const SnapshotDoc& doc, std::int64_t step) {
  constexpr double kLarger = 8;
  std::map<std::string, double> factors;
  const std::vector<double> steps = column_named(doc, "scalars", "step");
  const auto at = std::find(steps.begin(), steps.end(), static_cast<double>(step));
  const auto row = static_cast<std::size_t>(at - steps.begin());
  for (const NamedTensor& parameter : doc.parameters) {
    const std::string layer(layer_of(parameter.name));
    const std::vector<double> norms = column_named(doc, "weight_norm", layer),
                              ratios = column_named(doc, "update_ratio", layer);
    if (row >= norms.size() || row >= ratios.size()) continue;
    // The update is nearly all of the weights after it.
    const double before = ratios[row] >= kLarger ? norms[row] / ratios[row] : norms[row];
    const auto last =
        std::find_if(norms.rbegin(), norms.rend(), [](double norm) { return std::isfinite(norm); });
    if (last != norms.rend() && before > 0 && *last >= kLarger * before) factors[layer] = before / *last;
  }
  return factors;
}

/// Multiplies the parameters of these layers.
RunOptions scaled(const SnapshotDoc& doc, const std::map<std::string, double>& factors) {
  RunOptions options;
  for (const NamedTensor& parameter : doc.parameters) {
    const auto found = factors.find(std::string(layer_of(parameter.name)));
    if (parameter.slot != kNone && found != factors.end())
      options.edit.slot_edit[parameter.slot] = [factor = found->second](at::Tensor& storage) {
        if (storage.is_floating_point()) storage.mul_(factor);
      };
  }
  return options;
}

/// The weights with their size of before that update. Control: as much on the weights of all other layers.
Change scaled_back(const Case& c, std::int64_t step) {
  const std::map<std::string, double> factors = factors_back(c.doc(), step);
  std::map<std::string, double> others;
  double least = 1;
  for (const auto& [layer, factor] : factors) least = std::min(least, factor);
  for (const NamedTensor& parameter : c.doc().parameters)
    if (const std::string layer(layer_of(parameter.name)); factors.count(layer) == 0) others[layer] = least;
  Change change;
  change.text = count_text(static_cast<std::int64_t>(factors.size()), "layer") +
                " with weights scaled back to their size before the update of step " + std::to_string(step);
  change.kind = ChangeKind::hyperparameter;
  change.price = Price::hyperparameter;
  change.options = scaled(c.doc(), factors);
  RunOptions control = scaled(c.doc(), others);
  if (control.edit.slot_edit.empty()) {
    add_precision_placebo(c, change, c.op_index(), Precision::fp32);
  } else {
    change.placebo = {std::move(control)};
    change.placebo_text = "the weights of all other layers scaled as much";
  }
  return change;
}

}  // namespace

std::optional<RuinousRate> ruinous_rate(const Case& c) {
  if (!c.op() || c.culprit().origin != word(Origin::op)) return std::nullopt;
  const std::set<std::string> aside = layers_aside(c.graph(), OpId{c.op_index()});
  std::vector<Leap> leaps =
      find_leaps(c.doc(), [&](const std::string& layer) { return aside.count(layer) == 0; });
  if (leaps.empty()) return std::nullopt;
  const auto rate = absurd_rate(c.doc(), leaps.front().step);
  if (!rate) return std::nullopt;
  if (const auto jump = find_loss_jump(c.doc()); jump && jump->step <= rate->step) return std::nullopt;
  Change undone = scaled_back(c, rate->step);
  if (undone.options.edit.slot_edit.empty() || !c.has_time() || run_change(c, undone) != TrialResult::finite)
    return std::nullopt;
  if (const auto times = times_health(c); times && *times > kByBatch) return std::nullopt;
  return RuinousRate{*rate, std::move(leaps), std::move(undone)};
}

}  // namespace nanquest
