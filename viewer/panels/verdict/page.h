/// The tables of the verdict panel, the same in words and drawn. Private to viewer/panels/verdict.
#pragma once

#include <vector>

#include "viewer/model/verdict_page.h"

namespace nanquest::viewer {

/// Those of the page, the series of the layers that it names, and where in the program that was.
std::vector<PageTable> tables_of(const Session& session, const VerdictPage& page);

}  // namespace nanquest::viewer
