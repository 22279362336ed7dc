#include "replay/diff/regions.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "probe/observe/op_traits.h"
#include "probe/trace/names.h"
#include "replay/diff/align.h"
#include "replay/diff/reason.h"
#include "replay/diff/rounding.h"
#include "replay/trace/lockstep.h"

namespace nanquest::diff {
namespace {

constexpr std::int64_t kFewestThatPart = 2;  ///< one value at the end may be left out by fusing

/// What the operators of regions wrote, and their modules.
struct Inside {
  std::vector<at::Tensor> values;
  std::set<std::string> modules;
};

bool is_number_list(const at::Tensor& t) {
  return t.defined() && t.is_floating_point() && t.numel() > 1;
}

std::vector<OpId> forward_regions(const TraceGraph& graph) {
  std::vector<OpId> found;
  for (const OpId op : graph.ops())
    if (graph.op(op).name == kCompiledRegion && graph.op(op).phase == Phase::forward) found.push_back(op);
  return found;
}

void add_values(const Replayer& region, Inside& inside) {
  const TraceGraph graph(region.doc());
  std::vector<std::vector<OpId>> rows;
  for (const OpId op : graph.ops()) {
    rows.push_back({op});
    inside.modules.emplace(plain_path(graph.module_of(op)));
  }
  const RunOptions as_recorded;
  (void)march({{&region, &as_recorded}}, rows,
              [&](std::size_t, const std::vector<std::vector<at::Tensor>>& written) {
                for (const at::Tensor& t : written.front())
                  if (is_number_list(t)) inside.values.push_back(t.detach().clone());
              });
}

/// Whether one of the values is this one, in whatever shape.
bool is_among(const at::Tensor& value, const std::vector<at::Tensor>& values, const Apart& limit) {
  for (const at::Tensor& other : values) {
    if (other.numel() != value.numel()) continue;
    const Apart found = apart(value, other.sizes() == value.sizes() ? other : other.reshape(value.sizes()));
    if (!beyond(found, limit, value.scalar_type(), other.scalar_type())) return true;
  }
  return false;
}

struct Parted {
  OpId last_of_both, first;
  std::int64_t after = 0;  ///< values that are not there, from `first` on
};

Parted compare_with(const Replayer& eager, const TraceGraph& graph, const Inside& inside,
                    const Rounding& rounding) {
  std::vector<std::vector<OpId>> rows;
  for (const OpId op : graph.ops())
    if (graph.op(op).phase == Phase::forward && !computes_nothing(graph.op(op)) &&
        (graph.op(op).flags & kOpUninitialised) == 0 &&
        inside.modules.contains(plain_path(graph.module_of(op))))
      rows.push_back({op});
  Parted parted;
  const RunOptions as_recorded;
  (void)march({{&eager, &as_recorded}}, rows,
              [&](std::size_t row, const std::vector<std::vector<at::Tensor>>& written) {
                const OpId op = rows[row].front();
                const auto& all = written.front();
                const auto main = std::find_if(all.begin(), all.end(), is_number_list);  // not its statistics
                if (main == all.end()) return;
                const auto entry = static_cast<std::int32_t>(main - all.begin());
                if (is_among(*main, inside.values, rounding.limit({op.row(), entry})))
                  parted = {op, {}, 0};
                else if (++parted.after == 1)
                  parted.first = op;
              });
  return parted;
}

std::string words_without_number(const TraceGraph& graph, OpId op) {
  const std::string module = plain_path(graph.module_of(op));
  return graph.op(op).name + (module.empty() ? "" : " in " + module);
}

}  // namespace

std::optional<Finding> look_into_regions(const Replayer& eager, const Replayer& compiled,
                                         const Settings& settings) {
  const TraceGraph graph(eager.doc()), with_regions(compiled.doc());
  const std::vector<OpId> regions = forward_regions(with_regions);
  if (!settings.open_region || regions.empty() || !forward_regions(graph).empty()) return std::nullopt;
  if (settings.say) settings.say("running compiled regions operator by operator");
  Inside inside;
  for (const OpId region : regions) {
    const std::optional<Replayer> alone = settings.open_region(compiled, region);
    if (!alone) return std::nullopt;
    add_values(*alone, inside);
  }
  const Parted parted = compare_with(eager, graph, inside, Rounding(eager, settings.perturbations, {}));
  if (!parted.last_of_both || parted.after < kFewestThatPart) return std::nullopt;
  const OpRow& row = graph.op(parted.first);
  Finding finding;
  finding.kind = Kind::region;
  finding.op = row.name, finding.module = plain_path(graph.module_of(parted.first));
  finding.phase = phase_name(row.phase);
  finding.a = parted.first.row(), finding.b = regions.front().row();
  finding.places = 1;
  finding.name = "inside a compiled region: it has the value of " +
                 words_without_number(graph, parted.last_of_both) + ", but not this one nor the " +
                 std::to_string(parted.after - 1) + " after it";
  return finding;
}

}  // namespace nanquest::diff
