/// viewer/report: all panels of a run as one file, readable without the run.
///
///     write_file_atomically("out.html", report_html(session, pictures));
///
/// The HTML needs no other file: pictures, style and the few lines that sort tables are in it. Same facts as
/// the panels, made from their pages.
#pragma once

#include <span>
#include <string>

#include "viewer/panels/registry.h"

namespace nanquest::viewer {

/// A panel as it is drawn.
struct ReportPicture {
  Panel panel = Panel::all;
  std::string png;        ///< the bytes of a PNG file
  std::string dark = {};  ///< the same for readers whose system is dark; "": none
};

/// The report as Markdown, without pictures. The selection decides which incident, op and tensor.
std::string report_markdown(Session& session);
/// The report as HTML. `note`: why there are no pictures, "" if there is nothing to say.
std::string report_html(Session& session, std::span<const ReportPicture> pictures, const std::string& note);

}  // namespace nanquest::viewer
