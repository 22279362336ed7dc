// The rows of the history: their numbers against ATen, and the same rows in the series file.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "probe/step/weight_watch.h"
#include "probe/snapshot/reader.h"
#include "probe/snapshot/run_dir.h"
#include "probe/snapshot/series.h"
#include "tests/guard/guarded_training.h"

namespace nanquest::guard::testing {
namespace {

double value(const SeriesTable& table, std::size_t row, const std::string& column) {
  const auto found = std::find(table.columns.begin(), table.columns.end(), column);
  EXPECT_NE(found, table.columns.end()) << column;
  return table.values[row * table.columns.size() + static_cast<std::size_t>(found - table.columns.begin())];
}

double norm(const std::vector<at::Tensor>& tensors) {
  double sum = 0;
  for (const at::Tensor& t : tensors) sum += t.detach().to(at::kDouble).square().sum().item<double>();
  return std::sqrt(sum);
}

TEST(Record, rows_of_the_series_are_what_happened) {
  const std::vector<Batch> all = batches(10);
  const ScratchDirectory scratch;
  const std::string run = scratch.path + "/run";
  GuardedTraining guarded({.run_dir = run});
  guarded.probe->log("eval_loss", 9.5);
  std::vector<double> gradient_norm, weight_norm, ratio, losses;
  for (std::size_t i = 0; i < all.size(); ++i) {
    guarded.net.lr = 0.01 / static_cast<double>(i + 1);
    const at::Tensor w = guarded.net.parameters[4].detach().clone(),
                     b = guarded.net.parameters[5].detach().clone();
    const StepInputs inputs{
        .step = static_cast<std::int64_t>(i), .lr = guarded.net.lr, .sample_ids = all[i].ids};
    const StepReport report = guarded.probe->step(inputs, [&] { return guarded.net.compute(all[i]); });
    ASSERT_TRUE(report.ok());
    losses.push_back(report.loss);
    gradient_norm.push_back(norm({guarded.net.parameters[4].grad(), guarded.net.parameters[5].grad()}));
    guarded.net.update();
    EXPECT_TRUE(guarded.probe->after_update(static_cast<std::int64_t>(i)));
    weight_norm.push_back(norm({guarded.net.parameters[4], guarded.net.parameters[5]}));
    ratio.push_back(norm({guarded.net.parameters[4] - w, guarded.net.parameters[5] - b}) / norm({w, b}));
    if (i == 4) guarded.probe->log("eval_loss", 3.25);
    guarded.probe->log("too late", 1);
  }
  Batch bad{all[0].x.clone(), all[0].y, {}};
  bad.x[0][0] = std::nan("");
  const StepReport report = guarded.step(10, bad);
  ASSERT_FALSE(report.ok());
  ASSERT_TRUE(guarded.probe->finish("done"));

  const Result<std::vector<SeriesTable>> read = read_series(series_path(run, 0));
  ASSERT_TRUE(read) << read.error().text();
  ASSERT_EQ(read->size(), 6u);
  const SeriesTable& scalars = (*read)[0];
  ASSERT_EQ(scalars.rows(), 11u);
  EXPECT_EQ(std::count(scalars.columns.begin(), scalars.columns.end(), "too late"), 0);
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(value(scalars, i, "step"), static_cast<double>(i));
    EXPECT_EQ(value(scalars, i, "loss"), losses[i]);
    EXPECT_EQ(value(scalars, i, "lr"), 0.01 / static_cast<double>(i + 1));
    EXPECT_EQ(value(scalars, i, "gate"), 0);
    EXPECT_EQ(value(scalars, i, "measured"), 1);
    EXPECT_EQ(value(scalars, i, "eval_loss"), i < 4 ? 9.5 : 3.25);
    EXPECT_GT(value(scalars, i, "seconds"), 0);
    EXPECT_NEAR(value((*read)[1], i, "fc2"), gradient_norm[i], 1e-12 * gradient_norm[i]);
    EXPECT_NEAR(value((*read)[2], i, "fc2"), weight_norm[i], 1e-12 * weight_norm[i]);
    EXPECT_NEAR(value((*read)[3], i, "fc2"), ratio[i], 1e-6 * ratio[i]);
  }
  EXPECT_EQ(value(scalars, 10, "gate"), static_cast<double>(Gate::non_finite));
  EXPECT_TRUE(std::isnan(value(scalars, 10, "loss")));
  EXPECT_EQ(value(scalars, 10, "measured"), 0);
  EXPECT_TRUE(std::isnan(value((*read)[1], 10, "fc1")));
  EXPECT_EQ(value((*read)[2], 10, "fc2"), value((*read)[2], 9, "fc2"));

  // The snapshot's history is the same rows.
  const Result<SnapshotReader> file = SnapshotReader::open(report.incident);
  ASSERT_TRUE(file) << file.error().text();
  for (std::size_t t = 0; t < 6; ++t) {
    EXPECT_EQ(file->doc().history[t].name, (*read)[t].name);
    EXPECT_EQ(file->doc().history[t].columns, (*read)[t].columns);
    const std::size_t ten_rows = 10 * (*read)[t].columns.size();
    ASSERT_GE(file->doc().history[t].values.size(), ten_rows);
    EXPECT_TRUE(std::equal((*read)[t].values.begin(),
                           (*read)[t].values.begin() + static_cast<std::ptrdiff_t>(ten_rows),
                           file->doc().history[t].values.begin(),
                           [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }))
        << (*read)[t].name;
  }
}

TEST(Record, a_loop_without_after_update_has_rows_too) {
  const std::vector<Batch> all = batches(5);
  const ScratchDirectory scratch;
  GuardedTraining guarded({.run_dir = scratch.path + "/run"});
  for (std::int64_t i = 0; i < 5; ++i)
    guarded.probe->step({.step = i}, [&] { return guarded.net.compute(all[static_cast<std::size_t>(i)]); });
  ASSERT_TRUE(guarded.probe->finish("done"));
  const Result<std::vector<SeriesTable>> read = read_series(series_path(scratch.path + "/run", 0));
  ASSERT_TRUE(read) << read.error().text();
  ASSERT_EQ((*read)[0].rows(), 5u);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(value((*read)[0], i, "measured"), 0);
}

TEST(Record, a_resumed_run_goes_on_where_it_was) {
  const std::vector<Batch> all = batches(6);
  const ScratchDirectory scratch;
  const std::string run = scratch.path + "/run";
  {
    GuardedTraining first({.run_dir = run});
    for (std::int64_t i = 0; i < 4; ++i) ASSERT_TRUE(first.step(i, all[static_cast<std::size_t>(i)]).ok());
  }
  GuardedTraining second({.run_dir = run, .resume = true});
  for (std::int64_t i = 2; i < 6; ++i) ASSERT_TRUE(second.step(i, all[static_cast<std::size_t>(i)]).ok());
  ASSERT_TRUE(second.probe->finish("done"));
  const Result<std::vector<SeriesTable>> read = read_series(series_path(run, 0));
  ASSERT_TRUE(read) << read.error().text();
  ASSERT_EQ((*read)[0].rows(), 6u);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(value((*read)[0], i, "step"), static_cast<double>(i));
}

TEST(WeightWatch, samples_of_large_tensors_estimate_the_ratio) {
  at::manual_seed(17);
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16}) {
    const at::Tensor w = at::randn({300, 1001}).to(type);
    const at::Tensor strided = at::randn({50, 80}).to(type).t().slice(0, 0, 80, 2);
    const at::Tensor before = w.clone(), strided_before = strided.clone();
    WeightWatch watch(1);
    watch.watch(w);
    watch.watch(strided);
    watch.watch(w);  // tied
    ASSERT_TRUE(watch.due(0));
    watch.before_update();
    w.add_((at::randn({300, 1001}) * 0.03).to(type));
    strided.mul_(1.5);
    watch.after_update();
    const double exact = norm({w.to(at::kDouble) - before.to(at::kDouble)}) / norm({before});
    EXPECT_NEAR(std::sqrt(watch.moved_squares(0) / watch.before_squares(0)), exact, 0.08 * exact);
    EXPECT_NEAR(std::sqrt(watch.moved_squares(1) / watch.before_squares(1)), 0.5,
                type == at::kBFloat16 ? 0.01 : 1e-6);
    EXPECT_NEAR(std::sqrt(watch.stats(0).sum_squares), norm({w}), 1e-9 * norm({w}));
    EXPECT_EQ(watch.stats(1).amax, strided.abs().max().to(at::kDouble).item<double>());
    EXPECT_EQ(watch.non_finite(), 0u);
  }
}

TEST(WeightWatch, large_models_are_measured_every_k_steps_and_none_for_zero) {
  const at::Tensor large = at::zeros({(1 << 20) + 1});
  WeightWatch every(50), never(0);
  every.watch(large);
  never.watch(large);
  EXPECT_TRUE(every.due(0));
  EXPECT_FALSE(every.due(49));
  EXPECT_TRUE(every.due(100));
  EXPECT_FALSE(never.due(0));
}

}  // namespace
}  // namespace nanquest::guard::testing
