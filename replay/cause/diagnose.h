/// diagnose: from a snapshot to a verdict. The door of replay/cause.
///
///     Replayer replayer = Replayer::open(path).value();
///     Verdict v = diagnose(replayer);
///     std::cout << to_text(v);
#pragma once

#include <string>

#include "replay/cause/case.h"
#include "replay/cause/fixes.h"
#include "replay/report/verdict.h"
#include "replay/trace/replayer.h"

namespace nanquest {

struct DiagnoseOptions {
  bool try_fixes = true;     ///< run counterfactuals and placebos
  bool find_samples = true;  ///< which samples of the batch are needed for the failure
  double budget_seconds =
      20;             ///< the search for samples stops growing beyond this; nothing else is cut short
  Progress progress;  ///< told what runs next; may be empty
};

/// Verifies and diagnoses. Asks `find_culprit` again if the file names no culprit. Never throws.
Verdict diagnose(const Replayer& replayer, const std::string& snapshot, const DiagnoseOptions& options = {});

/// The same for a Case that is not backed by a file. `reproduction` is taken as it is.
Verdict diagnose_case(const Case& c, const Reproduction& reproduction, const DiagnoseOptions& options = {});

/// A Case over a replayer, which must outlive it.
Case make_case(const Replayer& replayer);

/// The part of a verdict that `verify` gives.
Reproduction reproduction_of(const VerifyResult& verified);

}  // namespace nanquest
