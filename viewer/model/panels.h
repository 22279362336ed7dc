/// Every panel as text and as CSV: for terminals, scripts and screen readers.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "viewer/model/session.h"

namespace nanquest::viewer {

enum class Panel : std::uint8_t { verdict, norms, trace, tensor, runs, all };

/// "verdict", "norms", "trace", "tensor", "runs", "all".
std::string_view panel_name(Panel panel);
std::optional<Panel> panel_from_name(std::string_view name);

/// What the panel shows, as lines of text. The selection of `session` decides which layer, op and tensor.
/// Reads a tensor's data where the panel needs it; an unreadable one is said so in the text.
std::string panel_text(Session& session, Panel panel);

/// What the panel shows, as comma-separated values with a header line. `usage` for Panel::all.
Result<std::string> panel_csv(Session& session, Panel panel);

}  // namespace nanquest::viewer
