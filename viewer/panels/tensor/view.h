/// The drawing of the tensor panel: numbers, exponents against the formats, a plane of the values.
#pragma once

#include <cstdint>
#include <string>

#include "viewer/panels/reading.h"
#include "viewer/panels/view.h"

namespace nanquest::viewer {

struct TensorPanel : PanelView {
  void draw(UiState& state) override;

  std::int64_t plane = 0;
  std::string plane_of;  ///< the tensor whose plane that is
  Wish wish;
};

}  // namespace nanquest::viewer
