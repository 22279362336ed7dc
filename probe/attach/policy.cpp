// What a program's policy after a bad step needs: undoing the step, checking weights, widening formats.
#include "probe/attach/session.h"

namespace nanquest::attach {

void AttachSession::remember(const std::vector<at::Tensor>& buffers) {
  safely("remembering buffers and generators", [&] { undo_.remember(buffers, tensors_.devices()); });
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
    const StateCheck::Names bad = check_.bad_now(StateCheck::kParameter);
    if (!bad.empty() && !check_.since_beginning(bad)) name = bad.front();
  });
  return name;
}

std::string AttachSession::widen(const std::vector<at::Tensor>& tensors, bool try_only) {
  std::string why_not = "the probe is off";
  safely("making weights fp32", [&] {
    if (!try_only) {
      hear(Hear::all);  // the file of a step that is still to be judged needs the weights as they are
      cut_tape("the weights got another format");
    }
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
