#include "replay/cause/region_alone.h"

#include <memory>
#include <string>
#include <utility>

#include "probe/trace/regions.h"
#include "replay/cause/opened_region.h"
#include "replay/cause/record_parts.h"
#include "replay/lab/lab.h"

namespace nanquest {

std::optional<Replayer> region_alone(const Replayer& replayer, OpId region) {
  SnapshotDoc doc = replayer.doc();
  const std::int64_t number = region_call(doc, get(doc, region)).graph;
  if (number < 0) return std::nullopt;
  const auto stored = replayer.tensor(region_graph_path(number));
  if (!stored) return std::nullopt;
  const at::Tensor text = stored->contiguous();
  const auto graph =
      RegionGraph::parse(std::string(static_cast<const char*>(text.const_data_ptr()), text.nbytes()));
  if (!graph || graph->draws()) return std::nullopt;
  doc.culprit = {};
  doc.culprit.op = region.row();
  Case c(
      std::move(doc), [&](const RunOptions& options) { return replayer.run(options); },
      [&](const std::string& path) {
        const auto value = replayer.tensor(path);
        return value ? std::optional(*value) : std::nullopt;
      });
  c.set_lab(std::make_shared<Lab>(replayer));
  return replayer_of(open_region_of(c, *graph).recording);
}

}  // namespace nanquest
