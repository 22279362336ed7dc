/// --report: the report of a run as a file.
#pragma once

#include <string>

#include "probe/base/result.h"
#include "viewer/model/session.h"

namespace nanquest::viewer {

/// The format that a report's name asks for; `usage` if it is neither.
enum class ReportKind { markdown, html };
Result<ReportKind> report_kind(const std::string& path);

/// Writes the report to `path`, complete or not at all. Where no pictures can be drawn the HTML says why.
/// `io` on failure. Main thread.
Status write_report(Session& session, ReportKind kind, const std::string& path);

}  // namespace nanquest::viewer
