/// IncidentWriter: what happens to a bad step that is news. One for every kind of loop: the incident is
/// counted, left to another rank or written, within the number of files and the share of the disk, and listed
/// in the manifest.
///
///     writer.begin(step);                                   // counts it
///     file = writer.write({Gate::non_finite, loss_bad}, pages, told);
///     add(told, writer.end(gate, file, told));              // into the manifest, with all facts
///
/// StateCheck decides whether a bad step is news or only shows damage of the last incident. Use on the thread
/// that trains.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "probe/record/record.h"
#include "probe/step/election.h"
#include "probe/step/facts.h"
#include "probe/step/file_budget.h"
#include "probe/step/run_log.h"
#include "probe/trace/spike_note.h"

namespace nanquest {

/// The record of a step, as its file needs it. Made by the code that recorded the step, and only if a file
/// may be written.
class StepPages {
 public:
  virtual ~StepPages() = default;
  /// The step as tables, with its culprit found. Null if there are none; the reason goes into `told`. What
  /// the recording refers to must not change until the file is written.
  virtual Recording* tables(Facts& told) = 0;
  /// The file will be written: adds what it needs beyond the tables (references to other files, the steps
  /// before). Errors go into `told`.
  virtual void complete(Facts& told) { (void)told; }
};

/// Pages that `make` makes on request, and `more` completes.
class MadePages final : public StepPages {
 public:
  using Make = std::function<Recording(Facts& told)>;
  using More = std::function<void(Recording& recording, Facts& told)>;
  explicit MadePages(Make make, More more = {}) : make_(std::move(make)), more_(std::move(more)) {}
  Recording* tables(Facts& told) override { return &recording_.emplace(make_(told)); }
  void complete(Facts& told) override {
    if (more_) more_(*recording_, told);
  }

 private:
  Make make_;
  More more_;
  std::optional<Recording> recording_;
};

struct IncidentWriterOptions {
  std::string run_dir;
  std::int32_t rank = 0, world_size = 1;
  int max_files = 16;          ///< of incidents
  std::uint64_t max_disk = 0;  ///< bytes; 0: no bound
  int wake_steps = -1;         ///< an incident at most this many steps after another one is in its wake
  std::set<std::pair<std::string, std::string>> muted = {};  ///< op and module of culprits to mute
  ElectionOptions election = {};
};

class IncidentWriter {
 public:
  /// Why a file is written.
  struct Reason {
    Gate gate = Gate::non_finite;
    bool loss_bad = false;                ///< the rank's own loss is not finite
    std::optional<SpikeNote> spike = {};  ///< for the gate `spike`
  };

  /// `log` must outlive this; null: nothing is written.
  IncidentWriter(RunLog* log, IncidentWriterOptions options);

  /// Whether incidents with this culprit are only counted.
  bool mutes(const std::string& op, const std::string& module) const {
    return options_.muted.count({op, module}) > 0;
  }
  bool mutes_any() const { return !options_.muted.empty(); }
  /// Counts a new incident of this step.
  void begin(std::int64_t step, bool muted = false);
  /// The same of a step that is finite (a spike). What comes soon after it is not in its wake, and where the
  /// disk is short its file goes before those of bad steps.
  void begin_spike(std::int64_t step);
  /// Whether it may have a file; the reason why not goes into `told`.
  bool may_write(Facts& told) const;
  /// Names the culprit and writes the incident's file, unless it is left to another rank. Returns its path;
  /// "" if there is none, and `told` has the reason. The files of spikes are not among `max_files`: their
  /// caller limits them.
  std::string write(const Reason& reason, StepPages& pages, Facts& told);
  /// Writes the incident into the manifest, with the facts in `told`. Returns what went wrong, if anything.
  Facts end(Gate gate, const std::string& file, const Facts& told);
  /// Writes the file of a step on request. Returns its path; "" if it can't be written. Every message about
  /// it begins with the step's number.
  std::string record(std::int64_t step, Gate gate, StepPages& pages, Facts& told);
  /// Counts a step that only shows damage of the last incident. Whether it is the first such step, which is
  /// reported.
  bool carry_on();

  /// Counts a step that is bad anew in the same way as the last incident. Whether it is the first one, to be
  /// told.
  bool repeat();

  int count() const { return count_; }
  /// Those of them that were only counted.
  int repeated() const { return repeated_; }
  /// Muted incidents; not part of `count`.
  int muted() const { return muted_; }
  std::int64_t carried_on() const { return carried_on_; }
  /// The step of the last incident; far in the past if there was none.
  std::int64_t last_step() const { return last_; }
  /// The same without those that are finite.
  std::int64_t last_bad_step() const { return last_bad_; }

 private:
  /// Writes `pages` and keeps the files within the disk's share.
  Status write_file(Recording& recording, StepPages& pages, const std::string& path, FileBudget::Kind kind,
                    Facts& told);
  void counted(std::int64_t step, bool muted);
  void name_culprit(Recording& recording, Facts& told) const;
  Status make_room(std::uint64_t bytes);

  RunLog* log_;
  IncidentWriterOptions options_;
  Election election_;
  FileBudget budget_;
  int count_ = 0, files_ = 0, muted_ = 0, repeated_ = 0, repeated_last_ = 0;
  bool last_muted_ = false, in_wake_ = false;
  static constexpr std::int64_t kNever = -1'000'000;
  std::int64_t last_ = kNever, last_bad_ = kNever, carried_on_ = 0, carried_by_last_ = 0;
};

}  // namespace nanquest
