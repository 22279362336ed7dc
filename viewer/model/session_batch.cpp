// The batch of the open incident, and the sample of it that is selected.
#include <algorithm>
#include <utility>

#include "viewer/model/session.h"

namespace nanquest::viewer {

void Session::select_sample(std::int64_t sample) {
  if (incident_ == nullptr || sample < 0 || sample >= sample_count(incident_->doc)) return;
  selection_.sample = sample;
}

/// The first that the verdict blames.
void Session::start_sample() {
  selection_.sample = kNone;
  if (verdict_ && !verdict_->poison.empty()) select_sample(std::ranges::min(verdict_->poison));
}

const Batch* Session::batch() {
  if (batch_waits())
    if (std::optional<Batch> read = load_batch(*incident_, progress_))
      batch_ = std::make_shared<Batch>(std::move(*read));
  return batch_.get();
}

}  // namespace nanquest::viewer
