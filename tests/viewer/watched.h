/// The fixture run as an attached program leaves it: with ranges of two places, and a forecast of one.
#pragma once

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "probe/snapshot/manifest.h"
#include "probe/snapshot/ranges.h"
#include "probe/snapshot/run_dir.h"
#include "probe/snapshot/series.h"
#include "tests/viewer/fixture.h"

namespace nanquest::viewer::testing {

inline constexpr const char* kNear = "aten::mm in blocks.3.mlp.up (forward, float16)";
inline constexpr const char* kFar = "aten::add in head (forward, float32)";
/// Of fp16 and fp32, by watched step; NaN: the place did not run then, infinity: it held nothing but zeros.
inline const std::vector<double> kWatched = {0, 50, 100, 130};
inline const std::vector<double> kNearBits = {9, 5.5, 2, 0.25};
inline const std::vector<double> kFarBits = {HUGE_VAL, std::nan(""), 1.5, 120};

/// Writes the ranges of a run that is there, and its forecast at step 100.
inline void watch(const std::string& run_dir) {
  std::vector<SeriesTable> tables = {{"steps", {"step"}, kWatched}};
  for (const char* name : kRangeTables) tables.push_back({name, {kNear, kFar}, {}});
  for (std::size_t i = 0; i < kWatched.size(); ++i) {
    const bool ran = !std::isnan(kFarBits[i]);
    const double row[][2] = {{65504 / std::exp2(kNearBits[i]), ran ? 7.0 : NAN},
                             {kNearBits[i], kFarBits[i]},
                             {0.125, ran ? 0.5 : NAN},
                             {0.0625, ran ? 0 : NAN},
                             {0, 0}};
    for (std::size_t t = 0; t < std::size(row); ++t)
      tables[t + 1].values.insert(tables[t + 1].values.end(), std::begin(row[t]), std::end(row[t]));
  }
  Result<SeriesWriter> writer = SeriesWriter::create(ranges_path(run_dir, 0), tables);
  bool good = writer.ok();
  for (std::size_t r = 0; good && r < kWatched.size(); ++r) {
    std::vector<std::span<const double>> rows;
    for (const SeriesTable& t : tables)
      rows.emplace_back(t.values.data() + r * t.columns.size(), t.columns.size());
    good = writer->append(rows).ok();
  }
  Manifest manifest = *read_manifest(run_dir);
  manifest.forecasts = {
      {100, 0, std::string(kNear) + " reaches the end of fp16 in about 34 steps", kNear, 2, 34, 30, 40}};
  if (!good || !writer->flush() || !write_manifest(run_dir, manifest))
    throw std::runtime_error("no ranges could be written");
}

}  // namespace nanquest::viewer::testing
