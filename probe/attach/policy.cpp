// What a program's policy after a bad step needs: the step undone, weights looked at, formats widened.
#include <ATen/ATen.h>

#include <algorithm>

#include "probe/attach/session.h"
#include "probe/step/left_behind.h"

namespace nanquest::attach {

std::vector<at::Device> AttachSession::devices_of_weights() {
  if (devices_.first != names_.parameters.size()) {
    devices_ = {names_.parameters.size(), {at::kCPU}};
    for (const auto& [name, weight] : names_.parameters.living())
      if (std::find(devices_.second.begin(), devices_.second.end(), weight.device()) == devices_.second.end())
        devices_.second.push_back(weight.device());
  }
  return devices_.second;
}

void AttachSession::remember(const std::vector<at::Tensor>& buffers) {
  safely("remembering buffers and generators", [&] { undo_.remember(buffers, devices_of_weights()); });
}

void AttachSession::pass(bool begins) {
  safely("a pass of the model", [&] { undo_.pass(begins); });
}

bool AttachSession::put_back() {
  bool all = true;
  always("putting buffers and generators back", [&] {
    cut_tape("a step was undone", /*every_step=*/false);
    all = undo_.put_back();
  });
  return all;
}

std::string AttachSession::spoiled_weight() {
  std::string name;
  safely("looking at the weights", [&] {
    const Incidents::Names bad = Incidents::non_finite(state_pass_, {names_.parameters.living(), {}, {}});
    if (!bad.empty() && !incidents_.since_beginning(bad)) name = bad.front();
  });
  return name;
}

std::string AttachSession::widen(const std::vector<at::Tensor>& tensors, bool try_only) {
  std::string why_not = "the probe is off";
  safely("making weights fp32", [&] {
    if (!try_only) cut_tape("the weights got another format");
    const Status done = try_only ? can_widen(tensors) : widened_.widen(tensors);
    why_not = done ? "" : done.error().message;
  });
  return why_not;
}

void AttachSession::keep_wide(bool keep) {
  always("the weights' formats", [&] {
    if (!keep) cut_tape("the weights got another format");
    keep ? widened_.keep() : widened_.take_back();
  });
}

}  // namespace nanquest::attach
