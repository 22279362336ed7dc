/// The drawing of the tensor panel: numbers, exponents against the formats, a plane of the values.
#pragma once

#include <cstdint>
#include <string>

#include "viewer/panels/view.h"

namespace nanquest::viewer {

struct TensorPanel : PanelView {
  void draw(UiState& state) override;

  std::int64_t plane = 0;
  std::string plane_of;     ///< the tensor whose plane that is
  std::string asked_for;    ///< what was to be read last
  std::uint64_t stops = 0;  ///< Loader::stops() then
};

}  // namespace nanquest::viewer
