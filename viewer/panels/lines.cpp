#include "viewer/panels/lines.h"

#include "probe/base/wrap.h"

namespace nanquest::viewer {
namespace {

constexpr std::size_t kWidth = 100;
constexpr std::size_t kLabel = 12;

}  // namespace

void paragraph(std::string& out, std::string label, const std::string& text) {
  if (text.empty()) return;
  for (const std::string& line : wrapped(text, kWidth - kLabel, /*keep_breaks=*/true)) {
    put(out, "{:<{}}{}\n", label, kLabel, line);
    label.clear();
  }
}

}  // namespace nanquest::viewer
