/// What Dear ImGui reports: items as they are drawn (for tests) and its own misuse.
#pragma once

#include <functional>
#include <string>

namespace nanquest::viewer {

/// An item's label and rectangle in pixels.
struct ItemSeen {
  std::string label;
  float x0 = 0, y0 = 0, x1 = 0, y1 = 0;
};

/// Called for every labelled item while set; null switches the hooks off. Main thread only.
void set_item_observer(std::function<void(const ItemSeen&)> observer);
/// How often Dear ImGui has reported misuse since the program started, and its first message.
int misuse_count();
const std::string& first_misuse();

}  // namespace nanquest::viewer
