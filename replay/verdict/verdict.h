/// Verdict: what replay found out about one incident, as types. The contract of the file is json.h.
///
///     Result<Verdict> v = read_verdict("run/incidents/step-00000131.r0.json");
///     if (v && v->found) std::cout << word(v->cause) << ", " << meaning(v->cause) << '\n';
///
/// Plain data without torch: `diagnose` (replay/cause/diagnose.h) fills it, replay/report writes it as text,
/// the viewer shows it. It decides nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "replay/verdict/words.h"

namespace nanquest {

/// One measured fact: what, its value, and the limit that it is compared with ("" if there is none).
struct Evidence {
  std::string name, value;
  std::string limit = {};
  std::vector<double> series = {};  ///< the numbers behind it, one per step, oldest first; NaN if not
                                    ///< measured; may be empty
};

/// One replay with exactly one thing changed.
struct Counterfactual {
  std::string change;  ///< "aten::mm in blocks.1.mlp computed in fp32"
  ChangeKind kind = ChangeKind::op;
  TrialResult result = TrialResult::failed;
  Scope scope = Scope::step;
  std::int64_t steps = 1;
  /// Why a finite step with the change is still wrong: "3 ops now give zeros alone where fp64 gives numbers".
  /// Such a change is no fix.
  std::string not_a_fix = {};
  /// What the run gave, for a step that is on record although it is finite: "loss 2.31".
  std::string measured = {};
};

/// The smallest change that was tried on this very step and removed the bad value.
struct Fix {
  std::string change, advice;
  Scope scope = Scope::step;
  bool verified = false;        ///< finite with it, the placebo failed, and nothing smaller is a fix
  bool placebo_failed = false;  ///< a control change of the same size did not fix it
  bool minimal = false;
  std::string patch =
      {};  ///< the same change as a unified diff of the program's own file; "" if there is none
  std::string no_patch = {};  ///< why there is none, in one sentence; not in the file
};

/// A step that was replayed on another kind of device than recorded, or on the same one with other bits
/// (kernels that add in any order): how near its values came, in norm and largest magnitude.
struct Elsewhere {
  std::string recorded_on, replayed_on;  ///< "cuda:0", "cpu"
  double bound = 0;                      ///< how far a value may be off, relative: the largest bound of the
                                         ///< step
  double distance = 0;                   ///< how far the worst of those within bounds is off
  std::int64_t outside = 0;              ///< outputs that are further off
};

/// How exactly the step came back.
struct Reproduction {
  bool bit_exact = false;
  Basis basis = Basis::every_output;
  std::int64_t outputs_compared = 0, mismatched = 0, opaque_ops = 0;
  std::optional<std::int64_t> first_mismatch;  ///< op index; otherwise the first outside the bounds, if there
                                               ///< is one
  std::vector<std::string> differences;        ///< environment entries that differ from the recording's
  std::optional<Elsewhere> elsewhere = {};     ///< nothing if one kind of device gave the same bits
  std::int64_t failed_ops = 0;                 ///< could not be run, and were not recorded

  /// What the replay was compared by, to show that it is the recorded event.
  Agreement agreement() const {
    if (outputs_compared <= 0) return Agreement::not_compared;
    if (bit_exact) return Agreement::bit_for_bit;
    const bool near = elsewhere && elsewhere->outside == 0 && failed_ops == 0;
    return near ? Agreement::within_bounds : Agreement::differs;
  }
};

/// The first non-finite output, or the bad value that came from outside.
struct CulpritInfo {
  std::string op;           ///< "aten::mm"; "" if no op read the bad value
  std::int64_t index = -1;  ///< row of the trace, -1 if none
  std::string node;         ///< backward node, "" outside backward
  std::string module;       ///< "" is the root
  std::string inside;  ///< `op` is an op inside this one, which is row `index`: "nanquest::compiled_region"
  std::string tensor;  ///< name of the bad input, weight, buffer or state
  BadValue value = BadValue::none;
  std::uint64_t count = 0;  ///< bad elements
  std::vector<std::int64_t> first;
  std::vector<std::string> stack;  ///< innermost first
  std::string part = {};           ///< for a sharded `tensor`: which part this process holds, in words
  std::string pass = {};           ///< of a pipeline: "micro-batch 3 of 4, stage 2 of 2"
};

/// One place that is to blame, or was excluded.
struct Blamed {
  std::string op;           ///< "aten::log"; for an outside value the first op that read it
  std::int64_t index = -1;  ///< row of the trace
  std::string module;       ///< "" is the root
  std::optional<Phase> phase;
  std::string tensor;  ///< name of the outside value; "" if an op made the value
};

/// What is to blame, by experiment: replacing only the bad values of `set` makes the step finite, and no
/// smaller set that was tried does.
struct BlameInfo {
  bool tried = false;
  std::vector<Blamed>
      set;  ///< in the order of the step, the culprit first; empty if no set made the step finite
  std::vector<Blamed> intended;  ///< infinities that were put in on purpose
  std::int64_t runs = 0;         ///< of the step
  /// Collectives for which this rank's own part was used for all ranks', because the other ranks' files were
  /// not used. What is to blame on this rank is shown; that the step is finite with all ranks is not.
  std::vector<Blamed> assumed;
};

/// A cause that was considered, and what speaks for and against it.
struct Claim {
  Label cause = Label::unknown;
  std::vector<std::string> facts_for, facts_against;
  std::optional<Depth> depth = {};  ///< of its proof; nothing in older files
};

/// The cause of a verdict that names none, as too little speaks for it.
struct Likely {
  Label cause = Label::unknown;
  double confidence = 0;
};

/// What made the values go wrong in earlier steps: found by running them again, changed (rehearsal.h).
struct RootCause {
  Label cause = Label::unknown;
  std::string change;      ///< the cheapest change that cured it; "" if none did
  std::int64_t steps = 0;  ///< good steps after the failure, with `change`
  Scope scope = Scope::run;
  bool verified = false;                            ///< verified for the run: there are enough steps
  std::vector<std::string> cured = {}, tried = {};  ///< all that cured it; all that were tried
  std::string explanation = {};                     ///< one sentence
  std::string file = {};  ///< name of the rehearsal file, which has the losses of all runs
};

/// Values of the step that are neither recorded nor replayed.
struct Unseen {
  std::int64_t ops = 0;                                     ///< that made such values
  std::vector<std::pair<std::string, std::int64_t>> names;  ///< of them, with counts, the most frequent first
  bool loss = false;
  std::int64_t gradients = 0;

  bool any() const { return ops > 0 || loss || gradients > 0; }
};

struct PrecisionInfo {
  PrecisionResult fp32 = PrecisionResult::not_run, fp64 = PrecisionResult::not_run;
  std::optional<PrecisionVerdict> verdict;
};

/// One rank's first bad value.
struct RankCulprit {
  std::int32_t rank = 0;
  std::string op, module;      ///< for a value from outside the op that read it; "" if there is none, or for
                               ///< the root
  std::int64_t index = -1;     ///< row of that rank's trace
  std::string file;            ///< that rank's snapshot
  Origin origin = Origin::op;  ///< if it is not `op`: `tensor` was bad when the step began
  std::string tensor;
  std::int64_t step =
      -1;  ///< number of an earlier step, whose bad weight came to this rank between the steps; otherwise -1
  std::string part = {}, pass = {};  ///< as in CulpritInfo
};

/// A step of several processes: what its ranks' files show together.
struct Ranks {
  std::int32_t world_size = 1;
  bool local = true;                 ///< made on this rank; otherwise it came by a collective
  std::string arrived_by;            ///< "c10d::allreduce_"; "" if it is local, or came between the steps
  std::int64_t arrived_index = -1;   ///< its row in this rank's trace
  std::optional<RankCulprit> first;  ///< the first rank that made one, if its file is here
  std::vector<std::pair<std::int32_t, std::string>> files;  ///< of the other ranks, by rank
  std::vector<std::int32_t> missing;                        ///< ranks that left nothing of this step
  std::vector<std::int32_t> rows;                           ///< ranks that left a row instead of a file
  std::string text;                                         ///< all of it in words
};

struct Verdict {
  std::string snapshot;
  std::int64_t step = 0;
  std::int32_t rank = 0;
  bool found = true;  ///< false: nothing harmful was found; the step holds none if `unseen` is empty
  /// Why the step is on record although it is finite (probe/trace/spike_note.h): "the loss was 7.9, usually
  /// 1.9 to 2.3"; "" for all other steps.
  std::string on_record = {};
  Unseen unseen;
  Reproduction reproduction;
  std::optional<Phase> phase;
  CulpritInfo culprit;
  BlameInfo blame;
  std::vector<Claim> claims;      ///< the accepted one first
  std::optional<RootCause> root;  ///< nothing until it was tried
  Origin origin = Origin::op;
  Label cause = Label::unknown;
  double confidence = 0;              ///< 0 … 1; rule: replay/verdict/confidence.h
  std::optional<Likely> likely = {};  ///< only where `cause` is unknown for want of confidence
  std::string explanation;
  std::string source;  ///< the rule that the cause's test comes from
  PrecisionInfo precision;
  std::vector<Evidence> evidence;
  std::vector<Counterfactual> counterfactuals;
  std::optional<Fix> fix;               ///< only a verified one
  std::string advice;                   ///< what to do, also if no fix was verified
  std::vector<std::int64_t> poison;     ///< samples of the batch without which the step is finite
  std::int64_t batch = 0;               ///< samples in the batch, 0 if unknown
  std::vector<std::string> poison_ids;  ///< their ids, if the run gave any
  std::vector<std::string> not_tested;
  std::optional<Ranks> ranks;  ///< of a distributed run
};

}  // namespace nanquest
