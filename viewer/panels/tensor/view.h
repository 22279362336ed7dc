/// The drawing of the tensor panel: numbers, exponents against the formats, a plane of the values,
/// single elements.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "viewer/panels/reading.h"
#include "viewer/panels/view.h"

namespace nanquest::viewer {

struct TensorPanel : PanelView {
  void draw(UiState& state) override;
  std::vector<Action> actions(UiState& state) override;

  std::int64_t plane = 0;
  std::string plane_of;                   ///< the tensor whose plane that is
  std::optional<std::uint64_t> followed;  ///< the element that the plane was chosen for
  Wish wish, culprit_wish;
  bool bits = false;    ///< elements with their bytes
  bool reveal = false;  ///< the elements come into sight with the next one that is gone to
  std::string seen;     ///< tensor and element that the list was moved to
};

}  // namespace nanquest::viewer
