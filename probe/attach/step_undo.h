/// StepUndo: buffers and random generators of a foreign program as they were when its step began.
///
///     undo.remember(buffers, {at::kCPU});
///     undo.pass(true);  … a model is called, or a backward pass runs …  undo.pass(false);
///     undo.put_back();                             // the step is left out: as if it had not been
///     undo.forget();                               // it was made
///
/// A foreign program may draw its next batch in the middle of a step. What is drawn outside of the passes is
/// its own business: putting the generators back would make it draw the same once more, so they stay then.
/// Buffers are held from `remember` until the step is over. One thread.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <vector>

#include "probe/step/undo_log.h"

namespace nanquest::attach {

class StepUndo {
 public:
  /// Remembers the state of now: these buffers and the default generators of these devices.
  void remember(const std::vector<at::Tensor>& buffers, const std::vector<at::Device>& devices);
  /// A pass of the program's models begins, or is over. Passes may lie in one another.
  void pass(bool begins);
  /// Puts back what was remembered, and forgets it; nothing if nothing was. True unless the generators had to
  /// stay.
  bool put_back();
  void forget();
  /// Whether there is something to put back.
  bool remembers() const { return remembers_; }

 private:
  struct Random {
    at::Generator generator;
    at::Tensor began, seen;  ///< bytes: at `remember`, and when somebody last looked
  };
  bool drawn_since() const;

  UndoLog buffers_;
  std::vector<Random> random_;
  bool remembers_ = false, drawn_outside_ = false;
  int depth_ = 0;
};

}  // namespace nanquest::attach
