/// The standing trace as a session uses it: which steps it records, what stays of them, and which of them did
/// the damage that a later step shows.
///
/// A round is what lies between two beginnings of a step, as the session sees them; rounds are numbered
/// without gaps, whatever the program calls its steps. The standing trace can't record all of them: values of
/// ops that can't be run again must be kept as they are written, which only TraceRecorder does. After a round
/// with such an op, it records until none has come by for kPlainRounds rounds: programs whose every step has
/// one (collectives, compiled regions) never come back, those whose evaluation has one do.
///
///     if (steps.fit()) steps.begin(round); else steps.pass(round);
///     … forward, backward …
///     keeps = steps.begin_update(bytes, on_device, /*asked=*/false);
///     … update …
///     steps.end(keeps, std::move(facts));
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "probe/attach/named_list.h"
#include "probe/capture/standing/governor.h"
#include "probe/capture/standing/standing.h"
#include "probe/capture/standing/tables.h"

namespace nanquest::attach {

/// What is known of a round beside its ops.
struct RoundFacts {
  std::int64_t step = 0;  ///< as the program counts
  double loss_scale = 1;
  std::vector<std::string> sample_ids;
  NamedList batch;
};

/// A round whose ops and values are on record, update included.
struct KeptRound {
  std::int64_t number = 0;
  RoundFacts facts;
};

class StandingSteps {
 public:
  /// Rounds without an op that can't be run again before the standing trace is trusted once more.
  static constexpr int kPlainRounds = 16;

  /// `keep_share` of the time of training, `memory_share` of the free memory, for keeping steps.
  StandingSteps(int keep_steps, double keep_share, double memory_share);

  StandingTrace& trace() { return trace_; }

  /// Whether the coming round can be recorded.
  bool fit() const { return odd_since_ >= kPlainRounds; }
  void begin(std::int64_t round);
  /// Somebody else records this round.
  void pass(std::int64_t round);
  /// … and an op came by that can't be run again.
  void saw_odd_op() { odd_since_ = 0; }

  /// The update is about to begin, and will overwrite about so many bytes. True if recording goes on and the
  /// round can be asked for when it is over; false ends it. `asked`: somebody wants the round, whatever that
  /// costs.
  bool begin_update(std::uint64_t bytes, bool on_device, bool asked);
  /// The round is over. With `keep` it stays for a while.
  void end(bool keep, RoundFacts facts);

  /// The round that left `tensor` non-finite, which it was when the round `now` began: null if that is not on
  /// record.
  const KeptRound* who_spoiled(const at::Tensor& tensor, std::int64_t now);

  bool empty() const { return kept_.empty(); }
  /// The round's story is written; later steps that it spoiled tell nothing new.
  void told(const KeptRound& round);

  /// Whether what an update of so many bytes overwrites may be kept, as far as memory goes.
  bool affords(std::uint64_t bytes) { return governor_.affords(bytes); }
  /// How much memory that takes; once, where it is worth a word, otherwise "".
  std::string announcement() { return governor_.announcement(); }
  /// Why updates are not kept, "" if they are.
  const std::string& why_not() const { return governor_.reason(); }
  /// Rounds recorded so far.
  std::int64_t recorded() const { return recorded_; }

 private:
  void new_round();

  StandingTrace trace_;
  UpdateGovernor governor_;
  std::deque<KeptRound> kept_;
  int keep_steps_;
  int odd_since_ = kPlainRounds;  ///< rounds
  std::int64_t round_ = -1, recorded_ = 0;
  bool open_ = false, counted_ = false;
  std::chrono::steady_clock::time_point began_;
};

/// Whether the values hold no NaN and no Inf; true for what can't be measured.
bool all_finite(const at::Tensor& values);

}  // namespace nanquest::attach
