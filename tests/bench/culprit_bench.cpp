// Seconds to find the culprit of a step of 1e5 ops, all of them bad.
#include <random>

#include "probe/trace/culprit.h"
#include "tests/bench/report.h"
#include "tests/trace/steps.h"

namespace nanquest {
namespace {

using testing::kOneInf;
using testing::kOneNan;
using testing::part;
using testing::Steps;
using testing::whole;

constexpr std::int64_t kOps = 100'000;

/// Layer after layer, each reading the last one, a weight and something from long ago.
SnapshotDoc layers() {
  Steps s;
  std::mt19937 random(1);
  std::vector<SlotId> made{s.slot(64)};
  const SlotId w = s.slot(64, SlotOrigin::parameter, "w");
  s.op("aten::log", {}, {whole(made[0], 64, kOneInf)}, kOpBirth);
  for (std::int64_t i = 1; i < kOps; ++i) {
    const SlotId next = s.slot(64);
    const SlotId old = made[random() % made.size()];
    s.op("aten::addmm", {whole(made.back(), 64, kOneNan), whole(w, 64), whole(old, 64, kOneNan)},
         {whole(next, 64, kOneNan)});
    made.push_back(next);
  }
  s.loss("aten::sum", {whole(made.back(), 64, kOneNan)}, whole(s.slot(1), 1, kOneNan));
  return std::move(s.doc);
}

/// One buffer, filled row by row; every op reads all rows so far.
SnapshotDoc cache() {
  Steps s;
  const SlotId buffer = s.slot(kOps);
  s.op("aten::log", {}, {part(buffer, 0, 1, kOneInf)}, kOpBirth);
  for (std::int64_t i = 1; i < kOps; ++i)
    s.op("aten::mul", {part(buffer, 0, i, kOneNan)}, {part(buffer, i, i + 1, kOneNan)});
  s.loss("aten::sum", {whole(buffer, kOps, kOneNan)}, whole(s.slot(1), 1, kOneNan));
  return std::move(s.doc);
}

/// One buffer in which every op changes a column, as optimizers of flattened parameters do.
SnapshotDoc columns() {
  Steps s;
  const SlotId buffer = s.slot(64 * 64);
  const auto column = [&](std::int64_t i) {
    return testing::View{buffer, i % 64, {64, 1}, {64, 1}, kOneNan};
  };
  for (std::int64_t i = 0; i < kOps; ++i) s.op("aten::mul_", {column(i)}, {column(i)});
  s.loss("aten::sum", {whole(buffer, 64 * 64, kOneNan)}, whole(s.slot(1), 1, kOneNan));
  return std::move(s.doc);
}

void measure(const std::string& name, SnapshotDoc doc) {
  std::vector<double> seconds;
  for (int i = 0; i < bench::rounds(5); ++i)
    seconds.push_back(bench::seconds([&] { (void)find_culprit(doc); }));
  bench::report(name, seconds, 1.0, bench::Better::lower);
}

}  // namespace
}  // namespace nanquest

int main() {
  nanquest::measure("find_culprit_layers_seconds", nanquest::layers());
  nanquest::measure("find_culprit_cache_seconds", nanquest::cache());
  nanquest::measure("find_culprit_columns_seconds", nanquest::columns());
}
