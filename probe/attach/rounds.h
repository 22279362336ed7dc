/// The rounds of a program: what is recorded of them, and which of them did the damage that a later one
/// shows.
///
/// A round is everything between two beginnings of a step, as the session sees them. Rounds are numbered
/// without gaps, however the program numbers its steps. The recorder records all of them; the last few are
/// kept with what their updates overwrote, within the limits of time and memory.
///
///     rounds.begin(/*watch=*/false);
///     … forward, backward …
///     keeps = rounds.begin_update(bytes, device, /*asked=*/false);
///     … update …
///     rounds.end(keeps, std::move(facts));
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "probe/attach/named_list.h"
#include "probe/record/governor.h"
#include "probe/record/recorder.h"
#include "probe/record/tables.h"
#include "probe/step/state_check.h"

namespace nanquest::attach {

/// Names of the program's tensors.
struct Names {
  NamedList parameters, buffers, states, scales;  ///< scales: of loss scalers
  NamedList kept;  ///< what lives on and is the program's own: copies of weights, averages

  struct Part {
    const NamedList* list;
    const char* word;  ///< StateCheck's
  };
  /// All that lives on from step to step.
  std::array<Part, 4> state() const {
    return {Part{&parameters, StateCheck::kParameter}, Part{&buffers, StateCheck::kBuffer},
            Part{&states, StateCheck::kMoment}, Part{&kept, StateCheck::kKept}};
  }
};

/// Where a round has its results: losses, which stay, and slots of gradients, which may be freed before they
/// are needed.
struct RoundOutcome {
  bool known = false;                                        ///< it was noted at the gate
  std::vector<std::pair<at::Tensor, std::uint32_t>> losses;  ///< with their slots
  std::vector<std::uint32_t> gradients;  ///< slots by the weights' numbers; UINT32_MAX: none
};

/// What is known of a round apart from its ops.
struct RoundFacts {
  std::int64_t step = 0;  ///< as the program counts
  double loss_scale = 1;
  std::vector<std::string> sample_ids;
  NamedList batch;
  /// After the update all weights, or states, were looked at and were finite: whatever spoiled them came
  /// later.
  bool weights_finite = false, states_finite = false;
  RoundOutcome outcome = {};  ///< of a round whose gate has not answered before its update
};

/// What a round computed, while it is alive.
struct RoundResults {
  at::Tensor loss;                        ///< undefined: unknown
  std::vector<at::Tensor> weights;        ///< as the optimizer holds them, by number; undefined: not held now
  const RoundOutcome* outcome = nullptr;  ///< instead of these, of a round that is over
};

class Rounds {
 public:
  /// A round whose ops and values are recorded, including the update.
  struct Kept {
    std::int64_t number = 0;
    RoundFacts facts;
    bool with_update = true;  ///< false: up to its gate
  };

  /// `keep_share` of the training time and `memory_share` of the free memory may be used to keep `keep_steps`
  /// rounds. The same amount of memory again is for `tape`, if it has steps.
  Rounds(int keep_steps, double keep_share, double memory_share, record::TapeOptions tape);

  Recorder& recorder() { return recorder_; }

  void begin(bool watch);
  /// The update is about to begin and will overwrite about this many bytes. True if recording goes on and the
  /// round is available when it is over; false ends recording. `asked`: record it whatever it costs. `hold`:
  /// the gate has not answered; a round whose update is not recorded then stays, up to its gate, until
  /// `answered`.
  bool begin_update(std::uint64_t bytes, at::Device device, bool asked, bool hold = false);
  /// Whether a round may be held whose update overwrites this many bytes.
  bool may_hold(std::uint64_t bytes, at::Device device) { return governor_.may_hold(bytes, device); }
  /// Number of the round that is running, or ended last.
  std::int64_t number() const { return round_; }
  /// A round that is over and recorded; null if it is not.
  const Kept* kept(std::int64_t number);
  /// The gate's answer for this round is known, and was handled. `healthy`: it found nothing.
  void answered(std::int64_t number, bool healthy);
  /// Results of the running round, at its gate.
  RoundOutcome outcome(const std::vector<at::Tensor>& losses, const std::vector<at::Tensor>& weights);
  /// The same for a watched round; its update is watched too.
  void watch_update();
  /// A graph is captured, or a captured one runs: no round is recorded until the next one begins.
  void lose();
  /// The round is finite so far: copies what it has read from outside, for comparison with a later bad one
  /// (probe/record/twin.h). `step` is its number as the program counts.
  void healthy(std::int64_t step, const Names& names, const NamedList& batch);
  /// The round is over. With `keep` it stays available for a while.
  void end(bool keep, RoundFacts facts);

  /// The round that is running or has just ended; null if it is not recorded.
  record::Step* now() { return recorder_.find(round_); }
  record::Step* of(const Kept& round) { return recorder_.find(round.number); }
  /// The last round before round `before` whose update made `tensor` non-finite; null if that round is not
  /// recorded. `finite`: the facts that show that a round's update did not do it.
  const Kept* round_that_spoiled(const at::Tensor& tensor, std::int64_t before, bool RoundFacts::*finite);
  bool keeps_none() const { return kept_.empty(); }
  /// The round has been written; later steps that it spoiled are not news.
  void told(const Kept& round);
  /// Values of a tensor's storage when `round` (null: the running one) first read it; undefined if it didn't.
  at::Tensor first_value(const at::Tensor& tensor, const Kept* round = nullptr);
  /// The tables of a round, before named values are added: StepTables::finish(names) does that.
  StepTables tables(record::Step& step, const Names& names, const NamedList& batch,
                    const RoundResults& results, StepNames& named);

  /// Whether there is memory to keep what an update of this many bytes overwrites.
  bool affords(std::uint64_t bytes, at::Device device) { return governor_.affords(bytes, device); }
  /// The same, however long it takes.
  bool has_room(std::uint64_t bytes, at::Device device) { return governor_.has_room(bytes, device); }
  /// How much memory that takes. Returned once, if it is worth telling; otherwise "".
  std::string announcement() { return governor_.announcement(); }
  /// Why updates are not kept; "" if they are.
  const std::string& why_not() const { return governor_.reason(); }
  /// Number of rounds that were not watched.
  std::int64_t unwatched() const { return unwatched_; }

 private:
  Recorder recorder_;
  UpdateGovernor governor_;
  std::deque<Kept> kept_;
  int keep_steps_;
  std::int64_t round_ = -1, unwatched_ = 0;
  record::TwinNames twin_names_;
  std::uint64_t names_revision_ = 0;  ///< names in `twin_names_`
  bool open_ = false, counted_ = false, watched_ = false, held_ = false;
  int awaited_ = 0;  ///< gates of the open round that have not answered
  std::chrono::steady_clock::time_point began_;
};

/// Whether the values hold no NaN and no Inf; true for what can't be measured.
bool all_finite(const at::Tensor& values);

}  // namespace nanquest::attach
