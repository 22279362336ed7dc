/// A page as lines of text, and as Markdown.
#pragma once

#include <string>

#include "viewer/model/page.h"

namespace nanquest::viewer {

/// Headline, facts with their labels in a column, tables; prose is wrapped at 100 characters.
std::string page_text(const PanelPage& page);
/// The same as Markdown, below a heading.
std::string page_markdown(const std::string& title, const PanelPage& page);
/// Text escaped for Markdown; on one line, for cells and list items.
std::string markdown_plain(const std::string& text);

}  // namespace nanquest::viewer
