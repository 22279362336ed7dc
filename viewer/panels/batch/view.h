/// The drawing of the batch: its tensors, its samples with small pictures, all that is known of one of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "viewer/model/batch_page.h"
#include "viewer/panels/reading.h"
#include "viewer/panels/view.h"

namespace nanquest::viewer {

struct BatchPanel : PanelView {
  void draw(UiState& state) override;
  std::vector<Action> actions(UiState& state) override;

  BatchPage page;
  std::uint64_t made_of = 0;      ///< Session::content() that it was made of, and
  const Batch* batch = nullptr;   ///< what was read then
  std::int64_t seen_sample = -1;  ///< that was scrolled to
  Wish wish;
};

}  // namespace nanquest::viewer
