/// What a run found that is no incident (the manifest's findings), in words: weights that do not learn, a
/// checkpoint with bad values, a loss that left its range.
#pragma once

#include <string>
#include <vector>

#include "viewer/model/page.h"
#include "viewer/model/session.h"

namespace nanquest::viewer {

/// The label of their facts.
inline constexpr const char* kFound = "Found";

/// "step 16: NO_GRADIENT: 4 weights get no gradient", as `nanquest explain` writes it; with ", rank 3" behind
/// the step in a run of several ranks.
std::string finding_text(const ManifestFinding& finding, bool of_ranks);

/// The findings of a run, a fact each (label `kFound`), in the order in which they were found: at most eight,
/// then how many more there are. Empty if there are none, or the manifest can't be read.
std::vector<Fact> finding_facts(const Session& session);

/// All of them as a table, no rows if there are none: a line each (finding_text), or `whole`, with columns
/// for kind, label, tensor, file and text.
PageTable findings_table(const Session& session, bool whole);

}  // namespace nanquest::viewer
