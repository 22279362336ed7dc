// The culprit's values, as recorded and replayed.
#include <algorithm>
#include <memory>

#include "viewer/model/session.h"

namespace nanquest::viewer {

std::string Session::culprit_name() const {
  return incident_ == nullptr ? "" : shown_values(culprit_values(*incident_), selection_.tensor);
}

const SideBySide* Session::read_culprit_side() const {
  return side_ != nullptr && side_->name == culprit_name() ? side_.get() : nullptr;
}

bool Session::culprit_waits() const {
  return !culprit_name().empty() && read_culprit_side() == nullptr;
}

const SideBySide* Session::culprit_side() {
  if (!culprit_waits()) return read_culprit_side();
  const std::vector<CulpritValues> all = culprit_values(*incident_);
  const auto values = std::ranges::find(all, culprit_name(), &CulpritValues::name);
  side_ = std::make_shared<const SideBySide>(load_side_by_side(*incident_, *values, progress_));
  return side_.get();
}

}  // namespace nanquest::viewer
