/// A page as lines of text, and as Markdown.
#pragma once

#include <string>

#include "viewer/model/page.h"

namespace nanquest::viewer {

/// Headline, facts with their labels in a column, tables; wrapped at 100 characters where it is prose.
std::string page_text(const PanelPage& page);
/// The same as Markdown, below a heading.
std::string page_markdown(const std::string& title, const PanelPage& page);
/// Text that Markdown takes as it is; on one line, as cells and items are.
std::string markdown_plain(const std::string& text);

}  // namespace nanquest::viewer
