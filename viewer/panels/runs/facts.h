/// What is known of a run as a whole. Private to viewer/panels/runs.
#pragma once

#include <vector>

#include "viewer/model/page.h"
#include "viewer/model/session.h"

namespace nanquest::viewer {

/// Status, command, start, ranks, and which parts of manifest and series can't be read; those that exist.
std::vector<Fact> run_facts(const Session& session);

/// What differs between the run and the one beside it: settings, series, incidents.
std::vector<PageTable> comparison_tables(const Comparison& comparison);

}  // namespace nanquest::viewer
