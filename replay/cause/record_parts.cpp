#include "replay/cause/record_parts.h"

#include <map>
#include <string>
#include <utility>

namespace nanquest {

Recording record_parts(const Parts& parts) {
  StepState state;
  state.batch = parts.given;
  state.buffers = parts.results;
  return record_step(state,
                     [&] {
                       parts.run();
                       return at::Tensor();
                     },
                     {.watch = true, .stacks = false});
}

std::optional<Replayer> replayer_of(const Recording& recording) {
  std::map<std::string, at::Tensor> data;
  for (const auto& [path, tensor] : recording.data) data.emplace(path, tensor.clone());
  auto replayer = Replayer::from_memory(recording.doc, std::move(data));
  if (!replayer) return std::nullopt;
  return std::move(replayer).value();
}

}  // namespace nanquest
