/// Excursions: finite steps far out of their run's band, as incidents: one for each excursion, and files for
/// some of them.
///
///     if (!excursions.heeds(news)) return;
///     Facts told = excursions.facts(news, step, loss, norm, tables);
///     if (excursions.begins(news)) …                 // an incident; else the same excursion's loss diverged
#pragma once

#include <cstdint>
#include <vector>

#include "probe/attach/options.h"
#include "probe/snapshot/model.h"
#include "probe/step/facts.h"
#include "probe/step/run_band.h"
#include "probe/trace/spike_note.h"

namespace nanquest::attach {

/// No torch. One thread.
class Excursions {
 public:
  explicit Excursions(const AttachOptions& options)
      : on_(options.on_spike), files_allowed_(options.probe.max_incidents) {}

  /// Whether a step is outside its band and something follows from that.
  bool heeds(const BandNews& news) const { return on_ != AttachOptions::OnSpike::off && news.outside(); }
  /// Whether the update of such a step is left out.
  bool skips() const { return on_ == AttachOptions::OnSpike::skip; }
  /// What there is to say of the first step of an excursion, or of a loss that does not come back. `tables`:
  /// the history, the oldest row first.
  static Facts facts(const BandNews& news, std::int64_t step, double loss, double norm,
                     const std::vector<SeriesTable>& tables);
  static SpikeNote note(const BandNews& news, double loss, double norm);
  /// Counts it, unless it is an excursion whose first step has been counted.
  bool begins(const BandNews& news);

  /// Whether another file may be written. Spikes may have one in four of the files of incidents besides: a
  /// failure that comes later needs its own.
  bool has_file_left() const;
  void wrote_file() { ++files_; }

  int count() const { return count_; }
  int files() const { return files_; }

 private:
  AttachOptions::OnSpike on_;
  int files_allowed_;
  int count_ = 0, files_ = 0;
  std::int64_t told_ = -1;  ///< first step of the last excursion that was counted
};

}  // namespace nanquest::attach
