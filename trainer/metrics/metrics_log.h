/// Room trainer/metrics: the numbers of a run, a line a step, for other programs to read; how long it will
/// take.
///
///     Result<MetricsLog> log = MetricsLog::open("run/metrics.jsonl", MetricsLog::Form::jsonl,
///     /*first=*/120); Status s = log->write(120, {{"loss", 2.31}, {"loss_scale", kUnknown}});   //
///     {"step":120,"loss":2.31}
///
/// A file holds the run that the present weights have seen: each step once, in order. Steps that are to be
/// taken again (resumed from an older state, rolled back) are cut off, not marked, so that a reader that
/// knows nothing of resuming draws the right curve; what was cut is still in the run's series. A line is one
/// write, so a killed program leaves none that is half; a machine that goes down may, and the next resume
/// cuts that off. Never: prints, knows of tensors, waits for the disk.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "probe/nanquest.h"

namespace nanquest::trainer {

/// Stands for a number that is not known: it is left out of a line, never 0.
inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

/// Numbers by name, in the order in which they are written.
using Numbers = std::vector<std::pair<std::string, double>>;

class MetricsLog {
 public:
  enum class Form : std::uint8_t {
    jsonl,  ///< an object a line; infinities are left out like what is unknown, since JSON has none
    csv,    ///< a header of names, then a row a line; what is unknown is an empty cell
  };

  /// Opens or makes `path` to go on with step `first`; lines from there on, and a last one that is not whole,
  /// are cut off. `columns` are those of a CSV after "step"; a file that is there already keeps its own, and
  /// numbers that it has no column for are left out of it. Errors: `io`, naming the path.
  static Result<MetricsLog> open(const std::string& path, Form form, std::int64_t first,
                                 std::vector<std::string> columns = {});
  MetricsLog(MetricsLog&& other) noexcept;
  MetricsLog& operator=(MetricsLog&& other) noexcept;
  ~MetricsLog();

  /// Adds the line of `step`. `io` if it can't be written whole.
  Status write(std::int64_t step, const Numbers& numbers);
  /// Cuts off the lines from step `first` on: they are going to be written again.
  Status cut(std::int64_t first);
  /// Lines that `open` and `cut` have cut off.
  std::int64_t cut_lines() const { return cut_lines_; }

 private:
  MetricsLog(std::string path, Form form) : path_(std::move(path)), form_(form) {}
  Error refused(const std::string& what) const;
  std::string line(std::int64_t step, const Numbers& numbers) const;
  Status append(const std::string& text);

  std::string path_;
  Form form_;
  std::vector<std::string> columns_;
  int file_ = -1;
  std::int64_t cut_lines_ = 0;
};

/// The files that a run keeps its numbers in. One that can't be written is reported once and given up: it
/// is no reason to end a run.
class MetricsFiles {
 public:
  /// Nothing is written until `open`.
  explicit MetricsFiles(std::function<void(const std::string&)> say) : say_(std::move(say)) {}
  /// `run_dir`/metrics.jsonl, and .csv if asked for, to go on with step `first`.
  Status open(const std::string& run_dir, bool csv, std::int64_t first,
              const std::vector<std::string>& columns);
  bool empty() const { return logs_.empty(); }
  void write(std::int64_t step, const Numbers& numbers);
  /// Cuts off the lines from step `first` on.
  void cut(std::int64_t first);

 private:
  void each(const std::function<Status(MetricsLog&)>& work);

  std::function<void(const std::string&)> say_;
  std::vector<MetricsLog> logs_;
};

}  // namespace nanquest::trainer
