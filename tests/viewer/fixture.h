/// A synthetic but lifelike run: a small GPT in fp16 whose values grow until a matrix product overflows at
/// step 131.
#pragma once

#include <string>

#include "probe/snapshot/model.h"

namespace nanquest::viewer::testing {

struct FixtureOptions {
  bool replayed = true;  ///< with a verdict file beside the snapshot
  bool watched =
      true;  ///< false: recorded without statistics and culprit; if replayed, its replay file has them
  bool series = true;  ///< with series.r0.h5
  bool manifest = true;
  bool poisoned = false;  ///< with pictures in the batch, of which one holds NaN: the verdict blames sample 3
  int incidents = 1;      ///< the second one (step 90) is a loss-scale overflow without a verdict
};

inline constexpr std::int64_t kBadStep = 131;
inline constexpr std::int32_t kBlocks = 4;

/// The tables of the bad step: ops of four blocks forward and some backward; the culprit is set.
SnapshotDoc fixture_doc();
/// The history of the steps before (scalars, grad_norm, weight_norm, update_ratio, grad_amax).
std::vector<SeriesTable> fixture_history(int steps = 132);
/// The same with the time of steps, the memory and the probe's cost, as a probe of this version writes them.
std::vector<SeriesTable> with_costs(std::vector<SeriesTable> tables);
/// A verdict that replay wrote (tests/golden/verdicts), of the culprit of fixture_doc. `poisoned`: it blames
/// sample 3 of the batch.
std::string fixture_verdict(bool poisoned = false);

/// The series of a rank, all rows of these tables, in place of one that is there. Throws as write_run does.
void write_series(const std::string& run_dir, const std::vector<SeriesTable>& tables, std::int32_t rank = 0);
/// The values of `column` in `table`, to be changed. Throws if there is no such column.
struct Column {
  SeriesTable* table = nullptr;
  std::size_t column = 0;
  double& operator[](std::size_t row) const { return table->values[row * table->columns.size() + column]; }
};
Column column_of(std::vector<SeriesTable>& tables, const std::string& table, const std::string& column);
/// Writes the whole run directory. Returns the path of the snapshot of step 131; throws std::runtime_error on
/// failure.
std::string write_run(const std::string& run_dir, const FixtureOptions& options = {});

/// Makes a run that `write_run` wrote one of `world` processes: of step 131 ranks 0 and 3 have whole files, the
/// last one nothing, all others a row that names rank 3 as the first; rank 2 had something bad of its own. Throws
/// as write_run does.
void write_ranks(const std::string& run_dir, std::int32_t world);

/// A new empty directory under the system's temporary one, removed when the object goes.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace nanquest::viewer::testing
