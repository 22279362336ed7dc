#include "viewer/model/verdict_page.h"
#include "viewer/panels/registry.h"

namespace nanquest::viewer {

PanelPage page_of_verdict(Session& session, Extent) {
  const VerdictPage page = verdict_page(session);
  PanelPage out{page.headline, page.cause, page.facts, verdict_tables(page)};
  if (!page.command.empty()) out.facts.push_back({"", "not replayed yet: run " + page.command});
  return out;
}

}  // namespace nanquest::viewer
