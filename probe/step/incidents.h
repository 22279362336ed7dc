/// Incidents: which bad steps are news. An incident that spoils weights makes every later step bad as well;
/// those only carry on its damage and are counted, not written.
///
///     const auto bad = Incidents::non_finite(pass, state);   // before the step wrote anything
///     if (incidents.carries_on(bad)) {
///       line = incidents.carry_on(step, bad);
///     } else {
///       incidents.begin(step);
///       if (incidents.may_write(why)) …
///       complaint = incidents.end(gate, file, line);
///     }
///     …                                                      // the update
///     incidents.left_behind(Incidents::non_finite(pass, state));
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "probe/base/result.h"
#include "probe/step/run_log.h"
#include "probe/step/tensor_pass.h"

namespace nanquest {

/// A program's state, by kind. The names of what is non-finite in it begin with the kind.
struct ProgramState {
  std::vector<std::pair<std::string, at::Tensor>> parameters, buffers, optimizer;
};

class Incidents {
 public:
  /// Names of tensors of the program's state (weights, buffers, moments).
  using Names = std::vector<std::string>;

  /// Names of the tensors that are non-finite, parameters first. `pass` is used for the measuring.
  static Names non_finite(TensorPass& pass, const ProgramState& state);
  /// The name, as `non_finite` gives it, of what a culprit's `origin` and `tensor` say; "" if that is no
  /// state.
  static std::string name_of(const std::string& origin, const std::string& tensor);

  /// `log` outlives this; null: nothing is written down. At most `max_files` snapshots.
  Incidents(RunLog* log, int max_files) : log_(log), max_files_(max_files) {}

  /// Whether `began_with` was called: once a program, before its first update.
  bool beginning_known() const { return beginning_known_; }
  /// What was non-finite before the first update. A line about it unless this step tells it itself (`told`);
  /// "" where there is nothing to tell.
  std::string began_with(std::int64_t step, Names bad, bool told);
  /// Whether nothing was: then nobody needs to look for what has been bad since.
  bool began_well() const { return from_the_beginning_.empty(); }
  /// Whether all of `bad`, which an update left behind, was so before the first one: then no update did it,
  /// and who reads it will be the incident.
  bool since_beginning(const Names& bad) const;

  /// Counts a new incident, in this step: one that loss or gradients show, or else what they don't.
  /// `muted`: somebody said not to be told of it; neither is what carries on its damage.
  void begin(std::int64_t step, bool gate_failed = true, bool muted = false);
  /// A step ran to its gate and was well, whatever the last incident left behind.
  void was_well() {
    harmless_ = harmless_ || !gate_failed_;
    arrives_.clear();
  }
  /// Whether what the last incident left behind was not seen in loss and gradients, although steps were made
  /// with it. The first step in which they are bad is news then.
  bool was_harmless() const { return harmless_; }
  /// Whether it may have a snapshot; counts the attempt. Else why not, in `why`.
  bool may_write(std::string& why);
  /// Writes it into the manifest. `file`: its snapshot, "" if none was written. Returns what went wrong, ""
  /// if nothing.
  std::string end(Gate gate, const std::string& file, const std::string& summary);

  /// Whether a step that began with these tensors non-finite shows nothing but the last incident's damage.
  /// `bad` as it was before the step wrote anything.
  bool carries_on(const Names& bad) const;
  /// Whether this tensor is known to hold the last incident's damage.
  bool is_damaged(const std::string& name) const { return damaged_.count(name) > 0; }
  /// Counts a step that carries on the last incident's damage, of which `bad` is what it shows; none if it is
  /// what arrives. A line for the first of them, then "".
  std::string carry_on(std::int64_t step, const Names& bad);
  /// Bad values of the last incident came from another process, by the collective `by`; "" if they did not.
  /// Until a step is well, more of them by the same way are no news: whose they are is told by the file of
  /// that process.
  void arrived(std::string by) { arrives_ = std::move(by); }
  /// The collective by which bad values may be expected, "" if none.
  const std::string& arrives_by() const { return arrives_; }
  /// After the update of an incident's step, or of one that carried it on: what is non-finite now.
  void left_behind(const Names& bad);
  /// Whether every one of `count` tensors is known to be damaged: then nobody needs to look again.
  bool all_damaged(std::size_t count) const { return damaged_.size() >= count; }

  int count() const { return count_; }
  /// Those that nobody wants to be told of; they are not in `count`.
  int muted() const { return muted_; }
  std::int64_t carried_on() const { return carried_on_; }
  /// The step of the last incident; far in the past if there was none.
  std::int64_t last_step() const { return last_; }

 private:
  RunLog* log_;
  int max_files_;
  int count_ = 0, files_ = 0, muted_ = 0;
  bool last_muted_ = false;
  std::int64_t last_ = -1'000'000, carried_on_ = 0, carried_by_last_ = 0;
  std::string last_file_, arrives_;
  bool gate_failed_ = true, harmless_ = false;  ///< of the last incident
  std::set<std::string> damaged_, from_the_beginning_;
  bool beginning_known_ = false;
};

}  // namespace nanquest
