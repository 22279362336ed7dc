#include "replay/trace/compare.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "replay/cli/commands.h"

namespace nanquest::cli {
namespace {

void print_row(const SnapshotDoc& doc, const CompareRow& row) {
  const OpRow& op = doc.ops[static_cast<std::size_t>(row.op)];
  const TensorDifference& d = row.difference;
  std::printf("%6d  %-34.34s %-9s %10llu %11s %11s %11s  %s\n", row.op,
              SnapshotDoc::qualified_name(op).c_str(),
              std::string(dtype_name(doc.tensors[static_cast<std::size_t>(row.tensor)].dtype)).c_str(),
              static_cast<unsigned long long>(d.different), short_number(d.max_abs).c_str(),
              short_number(d.max_rel).c_str(), short_number(d.max_ulp).c_str(),
              d.non_finite_recorded == d.non_finite_other  ? ""
              : d.non_finite_recorded > d.non_finite_other ? "finite only when changed"
                                                           : "finite only as recorded");
}

}  // namespace

int compare_command(const Common& common, const RunArguments& arguments, int rows) {
  auto replayer = open_snapshot(common);
  if (!replayer) return fail(replayer.error());
  const auto options = run_options(arguments, replayer->doc());
  if (!options) return fail(options.error());
  const auto result = compare(*replayer, *options);
  if (!result) return fail(result.error());
  if (common.json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const CompareRow& row : result->rows)
      list.push_back(
          {{"op", row.op},
           {"name", SnapshotDoc::qualified_name(replayer->doc().ops[static_cast<std::size_t>(row.op)])},
           {"count", row.difference.count},
           {"different", row.difference.different},
           {"non_finite_recorded", row.difference.non_finite_recorded},
           {"non_finite_other", row.difference.non_finite_other},
           {"max_abs", row.difference.max_abs},
           {"max_rel", row.difference.max_rel},
           {"max_ulp", row.difference.max_ulp}});
    const nlohmann::ordered_json j = {{"precision", arguments.precision},
                                      {"rows", list},
                                      {"first_difference", result->first_difference},
                                      {"first_finiteness_change", result->first_finiteness_change}};
    std::printf("%s\n", j.dump(2).c_str());
    return static_cast<int>(ExitCode::ok);
  }
  std::vector<CompareRow> sorted = result->rows;
  std::stable_sort(sorted.begin(), sorted.end(), [](const CompareRow& a, const CompareRow& b) {
    const auto key = [](const TensorDifference& d) {
      return std::pair(d.non_finite_recorded != d.non_finite_other, d.max_ulp);
    };
    return key(a.difference) > key(b.difference);
  });
  std::printf(
      "    op  name                               type       different     max abs     max rel     max "
      "ulp\n");
  for (std::size_t i = 0; i < sorted.size() && i < static_cast<std::size_t>(rows); ++i)
    print_row(replayer->doc(), sorted[i]);
  if (sorted.size() > static_cast<std::size_t>(rows))
    std::printf("… %zu more outputs; --rows N, or --json for all\n",
                sorted.size() - static_cast<std::size_t>(rows));
  if (result->first_finiteness_change != kNone)
    std::printf("finite on one side only, first at op %d\n", result->first_finiteness_change);
  return static_cast<int>(ExitCode::ok);
}

}  // namespace nanquest::cli
