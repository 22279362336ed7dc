/// diagnose: from a snapshot to a verdict. All that others need of replay/cause.
///
///     const Replayer replayer = Replayer::open(path).value();
///     const VerifyResult same = verify(replayer);
///     const Verdict v = diagnose(make_case(replayer, {}, same.run), reproduction_of(same), path);
///     std::cout << to_text(v);
#pragma once

#include <memory>
#include <string>

#include "replay/case/case.h"
#include "replay/cause/fixes.h"
#include "replay/trace/replayer.h"
#include "replay/verdict/verdict.h"

namespace nanquest {

struct DiagnoseOptions {
  bool try_fixes = true;     ///< run counterfactuals and placebos
  bool find_samples = true;  ///< which samples of the batch are needed for the failure
  std::string crash = {};    ///< what a kernel crashed at, if one did: nothing is tried again
  Progress progress = {};    ///< told what runs next; may be empty
};

/// What went wrong, why, and what helped. `reproduction` is taken as it is; beside the file `snapshot` those
/// of other ranks are looked for. Never throws.
Verdict diagnose(const Case& c, const Reproduction& reproduction, const std::string& snapshot,
                 const DiagnoseOptions& options = {});

/// A Case over a replayer, which must outlive it. Who is to blame is tried, whatever the file says. `limits`
/// hold for that and for all that is run for the Case later. `recorded`: the step as recorded, where somebody
/// has run it (VerifyResult::run); null: it is run here.
Case make_case(const Replayer& replayer, LabLimits limits = {},
               std::shared_ptr<const RunResult> recorded = {});

/// The part of a verdict that `verify` gives.
Reproduction reproduction_of(const VerifyResult& verified);

}  // namespace nanquest
