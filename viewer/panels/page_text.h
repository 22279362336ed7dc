/// A page as lines of text.
#pragma once

#include <string>

#include "viewer/model/page.h"

namespace nanquest::viewer {

/// Headline, facts with their labels in a column, tables; wrapped at 100 characters where it is prose.
std::string page_text(const PanelPage& page);

}  // namespace nanquest::viewer
