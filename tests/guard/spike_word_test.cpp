// A spike is a word of the history, and its step is applied.
#include <gtest/gtest.h>

#include "probe/snapshot/run_dir.h"
#include "probe/snapshot/series.h"
#include "tests/guard/guarded_training.h"

namespace nanquest::guard::testing {
namespace {

TEST(SpikeWord, is_written_and_the_step_is_applied) {
  const ScratchDirectory scratch;
  const std::string run = scratch.path + "/run";
  GuardedTraining guarded({.run_dir = run});
  const at::Tensor w = guarded.net.parameters[0];
  for (std::int64_t i = 0; i < 60; ++i) {
    const double scale = i == 56 ? 50 : 1;
    const StepReport report = guarded.probe->step({.step = i}, [&] {
      const at::Tensor loss = w.square().mean() * scale + 1;
      loss.backward();
      return loss;
    });
    EXPECT_TRUE(report.ok());
    EXPECT_EQ(report.summary, "");
  }
  ASSERT_TRUE(guarded.probe->finish("done"));
  EXPECT_EQ(guarded.probe->incidents(), 0);
  const Result<std::vector<SeriesTable>> read = read_series(series_path(run, 0));
  ASSERT_TRUE(read) << read.error().text();
  const SeriesTable& scalars = (*read)[0];
  const std::size_t columns = scalars.columns.size();
  for (std::size_t r = 0; r < 60; ++r)
    EXPECT_EQ(scalars.values[r * columns + 4], static_cast<double>(r == 56 ? Gate::spike : Gate::ok)) << r;
}

}  // namespace
}  // namespace nanquest::guard::testing
