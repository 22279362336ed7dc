/// diagnose: from a snapshot to a verdict. The only header of replay/cause that other folders need.
///
///     const Replayer replayer = Replayer::open(path).value();
///     const VerifyResult same = verify(replayer);
///     const Verdict v = diagnose(make_case(replayer, {}, same.run), reproduction_of(same), path);
///     std::cout << to_text(v);
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "replay/case/case.h"
#include "replay/cause/fixes.h"
#include "replay/trace/replayer.h"
#include "replay/verdict/verdict.h"

namespace nanquest {

struct DiagnoseOptions {
  bool try_fixes = true;     ///< run counterfactuals and placebos
  bool find_samples = true;  ///< find the samples of the batch that are needed for the failure
  std::vector<Label> left_out =
      {};                  ///< causes that are not asked: what is said where the right one is not known
  std::string crash = {};  ///< what a kernel crashed at, if one did: no more experiments then
  Progress progress = {};  ///< called with what runs next; may be empty
};

/// What went wrong, why, and what helped. `reproduction` is copied into the verdict. Files of other ranks are
/// looked for beside `snapshot`. Never throws.
Verdict diagnose(const Case& c, const Reproduction& reproduction, const std::string& snapshot,
                 const DiagnoseOptions& options = {});

/// A Case over a replayer, which must outlive it. Blame is found by experiment, whatever the file says.
/// `limits` hold for that and for all later runs of the Case. `recorded`: the step as recorded, if it was run
/// already (VerifyResult::run); null: it is run here.
Case make_case(const Replayer& replayer, LabLimits limits = {},
               std::shared_ptr<const RunResult> recorded = {});

/// The part of a verdict that `verify` determines.
Reproduction reproduction_of(const VerifyResult& verified);

}  // namespace nanquest
