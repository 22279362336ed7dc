/// spike_note: why a finite step is on record: its figures, and what was usual in its run.
///
/// The recorder notes it in SnapshotDoc::environment; only files with the gate `spike` have it, and older
/// ones do not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "probe/snapshot/model.h"

namespace nanquest {

/// A figure of the step (its loss, its gradient norm), and the band of the steps before.
struct SpikeFigure {
  double value = 0;
  bool out = false;                      ///< it was beyond `edge`
  double low = 0, middle = 0, high = 0;  ///< the middle, and two spreads below and above it
  double back = 0;                       ///< below this, an excursion has come back
  double edge = 0;                       ///< beyond this, a step is a spike
};

struct SpikeNote {
  bool diverged = false;                  ///< the loss had left its band for good when the step was recorded
  std::int64_t since = 0;                 ///< the excursion's first step
  std::optional<SpikeFigure> loss, norm;  ///< nothing if the run has no band for it
};

/// Writes it into `doc.environment`.
void note_spike(SnapshotDoc& doc, const SpikeNote& note);
/// What is noted there; nothing if there is no note, or it is not understood.
std::optional<SpikeNote> spike_note(const SnapshotDoc& doc);
/// Whether an entry of the environment is part of such a note.
bool tells_of_spike(std::string_view key);

/// "7.91, usually 1.9 to 2.3".
std::string figure_text(const SpikeFigure& figure);
/// Why the step is on record: "the loss was 7.91, usually 1.9 to 2.3", what left its band and how far; for a
/// file without a note that it did. "" for a step that is on record for another reason.
std::string on_record_text(const SnapshotDoc& doc);

}  // namespace nanquest
