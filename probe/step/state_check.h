/// StateCheck: what of a program's state is bad, since when, and which step did it. State is all that is kept
/// from step to step: weights, buffers, moments, and whatever else is given as a part of it.
///
///     StateCheck check({{"parameter", parameters}, {"buffer", buffers}}, /*every=*/50);
///     const auto bad = check.bad_now();                  // at any boundary of a step
///     if (check.carries_on(bad)) …                       // only damage of the last incident
///     check.incident(/*gate_failed=*/true);              // it is news
///     …                                                  // the update
///     check.left_behind(check.bad_now());
///
/// A name consists of the part and the tensor: "parameter fc1.weight". Use on the thread that trains; only
/// reads.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "probe/record/record.h"
#include "probe/record/recorder.h"
#include "probe/step/facts.h"
#include "probe/step/tensor_pass.h"

namespace nanquest {

class StateCheck {
 public:
  using Names = std::vector<std::string>;
  /// A part of the state: its word, as Culprit::origin has it but with spaces, and the tensors that belong to
  /// it now.
  struct Part {
    std::string word;
    std::function<NamedTensors()> tensors;
  };
  /// `kKept`: tensors of the program's own that are part of no model and no optimizer.
  static constexpr char kParameter[] = "parameter", kBuffer[] = "buffer", kMoment[] = "optimizer state",
                        kKept[] = "tensor";

  /// Large parts are looked at every `every` steps; 0: only on request.
  StateCheck(std::vector<Part> parts, int every) : parts_(std::move(parts)), every_(every) {}

  /// What the culprit of a watched step is.
  struct Blame {
    bool known = false;      ///< false: the step was not watched, or shows no culprit
    bool by_op = false;      ///< an op of the step made its bad values
    std::string state = {};  ///< as `bad_now` names it; "" if it is no part of the state
    std::string arrived_by =
        {};  ///< the collective by which its values came from another process; "" if they did not
    std::string op = {}, module = {};
    /// Whether anything that the last incident damaged gets into loss, gradients or weights of the step.
    bool damage_matters = true;
  };

  // What is bad now.

  /// Names of everything that holds NaN or Inf, in the order of the parts; of one part if it is given.
  Names bad_now(std::string_view word = {});
  /// Whether everything is looked at after this step.
  bool due(std::int64_t step) const { return every_ > 0 && step % every_ == 0; }
  /// The first bad tensor of this part, if the part is looked at after this step: every `every` steps, or
  /// always if it is small and in the CPU's memory. "" if none is bad; nothing if it was not looked at.
  std::optional<std::string> bad_after(std::int64_t step, std::string_view word);
  /// What of a step, which runs or has just ended, is looked at, and how.
  struct Look {
    std::size_t first = 0;  ///< writes of this op of the step and later ones
    bool always = false;    ///< whatever `every` says
  };
  /// Those of `tensors` that the step wrote and that now hold NaN or Inf, of a kind that they didn't hold
  /// when the step read them first. Infinities that somebody wrote there on purpose (a mask, the start of a
  /// maximum) are none. `recorder` records the step.
  NamedTensors spoiled(Recorder& recorder, const NamedTensors& tensors, std::int64_t step, Look look) const;
  /// Whether a watched step, good by its loss and gradients, hides an overflow at a new place. A model that
  /// does this once does it in every step.
  bool hides_new_overflow(const SnapshotDoc& doc);

  // Since when.

  /// Whether `began` was called: once per program, before its first update.
  bool beginning_known() const { return beginning_known_; }
  /// `bad` was bad before the first update. Returns what to say of it, unless this step reports it itself
  /// (`told`).
  Facts began(std::int64_t step, const Names& bad, bool told);
  bool began_well() const { return from_the_beginning_.empty(); }
  /// What was bad then, by name; empty until `began` was called.
  const std::set<std::string>& from_the_beginning() const { return from_the_beginning_; }
  /// Whether all of `bad`, which is there after an update, was bad before the first one. Then no update did
  /// it, and the step that reads it will be the incident.
  bool since_beginning(const Names& bad) const;
  /// After the update of this step everything was looked at and was finite.
  void finite_after(std::int64_t step) { finite_after_ = step; }
  /// The last such step; below 0 if there is none.
  std::int64_t last_finite() const { return finite_after_; }

  // Which step or process did it.

  /// A new incident, shown by loss or gradients (`gate_failed`) or not. Damage of the last one is forgotten.
  void incident(bool gate_failed);
  /// After the update of an incident's step, or of one that only shows its damage: what is bad now.
  void left_behind(const Names& bad);
  /// The damage got further by a good step's update: the next step may be bad by it.
  void spread() { harmless_ = false; }
  /// Bad values of the last incident came from another process, by the collective `by`; "" if they did not.
  /// Until a step is good, more of them by the same way are not news: that process's file names the cause.
  void arrived(std::string by) { arrives_ = std::move(by); }
  /// A step passed its gate and was good, whatever the last incident left behind.
  void was_well();
  /// Whether one of these is known to hold damage of the last incident.
  bool carries_on(const Names& bad) const;
  /// Those of `bad` that an incident left behind: not what was so before the first update.
  Names left_of(const Names& bad) const;
  /// If a bad step, in which `bad` is bad now, shows nothing but damage of the last incident: which of it;
  /// empty if the damage still arrives from another process. Nothing if the step is news. `update_made`: its
  /// update was made, and was good before. `blamed()` is called only if needed.
  std::optional<Names> of_last_incident(const Names& bad, bool update_made,
                                        const std::function<Blame()>& blamed) const;
  /// Finds the culprit of a watched step in its tables. `settled` returns the name of the bad tensor among
  /// all that share memory with the tensor of this name.
  Blame blame(SnapshotDoc& doc, const std::function<std::string(const std::string&)>& settled) const;
  /// A step was bad that is news, or one of its kind.
  void was_bad(std::int64_t step, const Blame& blame);
  /// The step in which the same op was to blame first, if this one is bad in a row of such steps: bad anew,
  /// and no news. The row goes on where nobody watched the step right after one of them.
  std::optional<std::int64_t> repeats(std::int64_t step, const Blame& blame);
  /// How many tensors are known to be damaged.
  std::size_t damaged() const { return damaged_.size(); }
  /// What to say of a step that shows damage of step `since`: `bad`, or what arrives if that is empty.
  Fact carried_on(std::int64_t step, const Names& bad, std::int64_t since) const;

 private:
  bool is_damaged(const std::string& name) const { return damaged_.count(name) > 0; }

  std::vector<Part> parts_;
  int every_;
  TensorPass pass_;
  std::set<std::string> damaged_, from_the_beginning_, hidden_;
  std::string arrives_;
  bool beginning_known_ = false;
  bool was_well_ = false;    ///< some step was
  bool gate_failed_ = true;  ///< of the last incident
  /// The damage it left was not seen in loss and gradients, although steps were made with it: the first step
  /// in which they are bad is news then.
  bool harmless_ = false;
  std::int64_t finite_after_ = -1;
  std::map<std::string, std::int64_t> row_;  ///< op and module of culprits, and the first step of each
  std::int64_t last_of_row_ = -1;
};

}  // namespace nanquest
