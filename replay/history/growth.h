/// growth: did values grow over the steps before the incident? A replay of one step can't show that.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "probe/snapshot/model.h"

namespace nanquest {

/// One column of the history that grew.
struct Growth {
  std::string what;            ///< "grad_norm of blocks.1.mlp", "loss"
  double bits_per_step = 0;    ///< robust slope of log2(value)
  double bits = 0;             ///< slope × steps
  double first = 0, last = 0;  ///< finite values at both ends of the window
  std::vector<double> series;  ///< the window, one value per step, oldest first, as recorded (NaN and Inf
                               ///< included); NaN for a step at which it was not measured
};

/// True for a layer (a column of a table of layers) whose growth matters.
using LayerFilter = std::function<bool(const std::string& layer)>;

/// Columns of loss, norms and amax that grew over the last 64 or the last 16 steps by at least one bit (loss
/// and weight norms: half a bit), with at least three quarters of all pairs rising among 8 or more points.
/// Most bits first, one entry per column.
///
/// With any number of steps, also: a column that was multiplied by more than 16 in each of the last two steps
/// or more (not counting non-finite values at the end), and weights that leapt between two looks at them: by
/// more than 256, to more than a thousand (AdamW with a learning rate of 1000 does that in its first step;
/// initial weights are at most 4). The same for one update, by its ratio to the weights before it, which may
/// be those before the first step.
///
/// Weights of a large model are measured at some steps only (column "measured" of the table "scalars";
/// between them the history repeats the last value). Then the whole history is the window, and 5 points are
/// enough if each is above all before it: by chance that is 1 in 120.
///
/// A LoRA adapter's second factor begins at zero, and so does the first one's gradient: their first steps
/// grow because of the learning rate alone, which says nothing. Their growth counts if the later half of the
/// steps grew by more than that, 1.25 bits.
///
/// Many series are looked at, and some rise by chance: reported are those that are significant among all that
/// were looked at (trend.h; at most one in twenty by chance). Layers without `is_of_interest` are not looked
/// at; empty: all are.
std::vector<Growth> find_growth(const SnapshotDoc& doc, const LayerFilter& is_of_interest = {});

/// "weight_amax of blocks.1.mlp grew from 1.4 to 3.4 over the last 64 steps"
std::string words(const Growth& growth);
/// How weights grew over the steps before the incident, for the column that grew most, in words as above
/// (Rehearsal::growth). "" if they did not.
std::string weights_grew(const SnapshotDoc& doc);

/// A step before the incident at which the loss jumped (first_jump, trend.h).
struct LossJump {
  std::int64_t step = 0;
  double before = 0, loss = 0;
};
/// The first one within the last 64 steps before the incident; nothing if there is none.
std::optional<LossJump> find_loss_jump(const SnapshotDoc& doc);

/// One update that multiplied the weights of a layer.
struct Leap {
  std::string layer;
  std::int64_t step = 0;         ///< the step of the update
  double before = 0, after = 0;  ///< norm, or largest magnitude, of the layer's weights
};

/// The first of the last 16 updates by which a layer's weights became at least 8 times larger, by their norm
/// or their largest magnitude, and reached at least 1: no training intends that. By its ratio to the weights
/// before it the update of the first step is known as well. Weights that begin at zero (an adapter) do not
/// count. Nothing if there is none.
std::optional<Leap> find_leap(const SnapshotDoc& doc, const LayerFilter& is_of_interest = {});

/// All layers that the update of that step multiplied so, one entry per layer; empty if there is none.
std::vector<Leap> find_leaps(const SnapshotDoc& doc, const LayerFilter& is_of_interest = {});

/// The learning rate of an update, such as one that stands out.
struct RateJump {
  std::int64_t step = 0;  ///< the step of the update
  double rate = 0;
  double before = 0;  ///< the largest of all steps before that
};

/// The last update before the incident whose learning rate, above 0, is recorded; `before` is 0. Nothing if
/// there is none.
std::optional<RateJump> last_rate(const SnapshotDoc& doc);

/// One of the last two updates before the incident with more than 1000 times the largest learning rate of all
/// before it: no warm-up or restart does that. Nothing if no rate above 0 came before.
std::optional<RateJump> find_rate_jump(const SnapshotDoc& doc);

/// The rate of the update of `step` if it is absurd: more than 1000 times the largest of all before it, or at
/// least 100 with fewer than 8 updates before it at half of it or more (`before` is the largest rate before
/// it, 0 if there is none). Weights may be of any size, so a rate alone shows nothing: ask only about an
/// update that is known to have multiplied weights. Nothing otherwise, or if that rate is not recorded.
std::optional<RateJump> absurd_rate(const SnapshotDoc& doc, std::int64_t step);

}  // namespace nanquest
