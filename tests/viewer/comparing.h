/// Two runs that are compared, and what their series may hold besides the fixture's.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "probe/snapshot/manifest.h"
#include "tests/viewer/story.h"

namespace nanquest::viewer::testing {

/// A column of the program's own besides those of the fixture.
inline void add_column(std::vector<SeriesTable>& tables, const std::string& name,
                       const std::function<double(std::size_t row)>& value) {
  SeriesTable& scalars = tables[0];
  std::vector<double> values;
  for (std::size_t r = 0, width = scalars.columns.size(), rows = scalars.rows(); r < rows; ++r) {
    const auto row = scalars.values.begin() + static_cast<std::ptrdiff_t>(r * width);
    values.insert(values.end(), row, row + static_cast<std::ptrdiff_t>(width));
    values.push_back(value(r));
  }
  scalars.columns.push_back(name);
  scalars.values = std::move(values);
}

/// The fixture's series with the speed of a run, which is never that of another.
inline std::vector<SeriesTable> timed(int steps, double speed) {
  std::vector<SeriesTable> tables = fixture_history(steps);
  add_column(tables, "tokens_per_second",
             [speed](std::size_t r) { return r == 0 ? std::nan("") : speed + static_cast<double>(r); });
  return tables;
}

class Comparing : public Story {
 protected:
  /// The story, and the same with another learning rate: its loss is another from step 41 on, it goes on to
  /// step 149, and only its own step 131 failed.
  void SetUp() override {
    write_run(dir(), {.incidents = 2});
    write_series(dir(), timed(132, 1000));
    write_run(other(), {.replayed = false, .incidents = 1});
    std::vector<SeriesTable> tables = timed(150, 2000);
    const Column loss = column_of(tables, "scalars", "loss");
    for (std::size_t step = 41; step < 150; ++step) loss[step] += 0.25;
    write_series(other(), tables);
    for (const auto& [run, rate] : {std::pair{dir(), "0.006"}, {other(), "0.003"}}) {
      Manifest manifest = *read_manifest(run);
      manifest.config = {{"lr", rate}, {"steps", "200"}};
      if (run == dir()) manifest.config["seed"] = "7";
      ASSERT_TRUE(write_manifest(run, manifest));
    }
  }
  std::string other() const { return temp_.path() + "/other"; }
  Session both() {
    Session session = open(dir());
    EXPECT_TRUE(session.compare_with({other()}));
    return session;
  }
};

}  // namespace nanquest::viewer::testing
