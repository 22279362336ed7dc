#include "viewer/panels/page_text.h"
#include "viewer/report/report.h"

namespace nanquest::viewer {

std::string report_markdown(Session& session) {
  std::string out = "# " + markdown_plain(session.title()) + "\n\n";
  for (const PanelInfo& panel : all_panels())
    out += page_markdown(panel.title, panel.page(session, Extent::whole));
  return out;
}

}  // namespace nanquest::viewer
