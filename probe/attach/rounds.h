/// The rounds of a program: what of them is on record, and which of them did the damage that a later one
/// shows.
///
/// A round is what lies between two beginnings of a step, as the session sees them; rounds are numbered
/// without gaps, whatever the program calls its steps. The recorder records all of them; the last few stay
/// with what their updates overwrote, as far as that costs no more than it may.
///
///     rounds.begin(/*watch=*/false);
///     … forward, backward …
///     keeps = rounds.begin_update(bytes, device, /*asked=*/false);
///     … update …
///     rounds.end(keeps, std::move(facts));
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "probe/attach/named_list.h"
#include "probe/record/governor.h"
#include "probe/record/recorder.h"
#include "probe/record/tables.h"

namespace nanquest::attach {

/// Names that the program's tensors have.
struct Names {
  NamedList parameters, buffers, states, scales;  ///< scales: of loss scalers
};

/// What is known of a round beside its ops.
struct RoundFacts {
  std::int64_t step = 0;  ///< as the program counts
  double loss_scale = 1;
  std::vector<std::string> sample_ids;
  NamedList batch;
  /// After the update somebody looked at all weights, or states, and they were finite: what spoiled them came
  /// later.
  bool weights_finite = false, states_finite = false;
};

/// What a round computed, while it is there.
struct RoundResults {
  at::Tensor loss;                  ///< undefined: nobody knows
  std::vector<at::Tensor> weights;  ///< as the optimizer holds them, by number; undefined: not held now
};

class Rounds {
 public:
  /// A round whose ops and values are on record, update included.
  struct Kept {
    std::int64_t number = 0;
    RoundFacts facts;
  };

  /// `keep_share` of the time of training, `memory_share` of the free memory, for keeping `keep_steps`
  /// rounds. As much memory again is for `tape`, if it has steps.
  Rounds(int keep_steps, double keep_share, double memory_share, record::TapeOptions tape);

  Recorder& recorder() { return recorder_; }

  void begin(bool watch);
  /// The update is about to begin, and will overwrite about so many bytes. True if recording goes on and the
  /// round can be asked for when it is over; false ends it. `asked`: somebody wants the round, whatever that
  /// costs.
  bool begin_update(std::uint64_t bytes, at::Device device, bool asked);
  /// The same for a watched round, whose update is watched as well.
  void watch_update();
  /// A graph that was captured is made, or runs: no round is on record until the next begins.
  void lose();
  /// The round is well so far: what it has read from outside is kept for one that goes bad
  /// (probe/record/twin.h). `step` is its number as the program counts.
  void healthy(std::int64_t step, const Names& names, const NamedList& batch);
  /// The round is over. With `keep` it stays for a while.
  void end(bool keep, RoundFacts facts);

  /// The round that runs, or has just ended: null if it is not on record.
  record::Step* now() { return recorder_.find(round_); }
  record::Step* of(const Kept& round) { return recorder_.find(round.number); }
  /// The round whose update left `tensor` non-finite, which it was when the round that runs began: null if
  /// that is not on record. `running`: a round runs; otherwise the next one is about to begin. `finite`: what
  /// tells that a round's update didn't.
  const Kept* round_that_spoiled(const at::Tensor& tensor, bool running, bool RoundFacts::*finite);
  bool keeps_none() const { return kept_.empty(); }
  /// The round's story is written; later steps that it spoiled tell nothing new.
  void told(const Kept& round);
  /// Values of a tensor's storage when this round read it first; undefined if it didn't.
  at::Tensor first_value(const at::Tensor& tensor);
  /// The tables of a round up to where what has a name is added: StepTables::finish(names) does that.
  StepTables tables(record::Step& step, const Names& names, const NamedList& batch,
                    const RoundResults& results, StepNames& named);

  /// Whether what an update of so many bytes overwrites may be kept, as far as memory goes.
  bool affords(std::uint64_t bytes, at::Device device) { return governor_.affords(bytes, device); }
  /// How much memory that takes; once, where it is worth a word, otherwise "".
  std::string announcement() { return governor_.announcement(); }
  /// Why updates are not kept, "" if they are.
  const std::string& why_not() const { return governor_.reason(); }
  /// Rounds so far that nobody watched.
  std::int64_t unwatched() const { return unwatched_; }

 private:
  Recorder recorder_;
  UpdateGovernor governor_;
  std::deque<Kept> kept_;
  int keep_steps_;
  std::int64_t round_ = -1, unwatched_ = 0;
  record::TwinNames twin_names_;
  std::uint64_t names_revision_ = 0;  ///< of those in `twin_names_`
  bool open_ = false, counted_ = false, watched_ = false;
  std::chrono::steady_clock::time_point began_;
};

/// Whether the values hold no NaN and no Inf; true for what can't be measured.
bool all_finite(const at::Tensor& values);

}  // namespace nanquest::attach
