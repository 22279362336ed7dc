#include "trainer/loop/agreement.h"

#include <limits>
#include <utility>

namespace nanquest::trainer {
namespace {

/// What `least` gives where no rank has anything to say.
constexpr std::int64_t kNothing = std::numeric_limits<std::int64_t>::max();

}  // namespace

Status Agreement::ready(const Status& batch) {
  if (ranks_.alone()) return batch;
  // One number for both questions: 0 if a rank has no batch, else what a rank that was asked to stop was
  // asked with.
  const int asked = stop_code_;
  const std::int64_t said = ranks_.least(!batch ? 0 : asked != 0 ? asked : kNothing);
  if (said == 0) {
    ended_together_ = true;
    return agreed(ranks_, batch);
  }
  stop_agreed_ = said != kNothing;
  if (stop_agreed_) stop_code_ = static_cast<int>(said);
  return {};
}

Status Agreement::alike(std::string text, const NamedTensors& weights, std::int64_t step) {
  if (rank_work_.agree_on(std::move(text), weights)) return {};
  ended_together_ = true;
  if (!ranks_.first()) return Error{ErrorCode::internal, "", ""};
  return Error{ErrorCode::internal,
               "step " + std::to_string(step) + ": weights, data or settings are not the same on all ranks",
               "give all of them the same files and settings, and machines of one kind; checkpoints before "
               "this are whole"};
}

}  // namespace nanquest::trainer
