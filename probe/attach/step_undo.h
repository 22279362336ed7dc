/// StepUndo: buffers and random generators of a foreign program as they were when its step began.
///
///     undo.remember(buffers, {at::kCPU});
///     undo.pass(true);  … a model is called, or a backward pass runs …  undo.pass(false);
///     undo.put_back();                             // the step is skipped
///     undo.forget();                               // the step was made
///
/// A foreign program may draw its next batch in the middle of a step. If it drew numbers outside of the
/// passes, the generators are not restored: it would draw the same numbers again. Buffers are held from
/// `remember` until the step is over. One thread.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <vector>

#include "probe/step/undo_log.h"

namespace nanquest::attach {

class StepUndo {
 public:
  /// Saves the present state of these buffers and of the default generators of these devices.
  void remember(const std::vector<at::Tensor>& buffers, const std::vector<at::Device>& devices);
  /// A pass of the program's models begins or ends. Passes can be nested.
  void pass(bool begins);
  /// Restores what was saved, and drops it; does nothing if nothing was saved. True unless the generators had
  /// to stay.
  bool put_back();
  /// The buffers alone, by their device, if its `word` says so (UndoLog::restore_buffers_if).
  bool put_back_buffers_if(const at::Tensor& word) { return buffers_.restore_buffers_if(word); }
  std::vector<at::Tensor> buffers() const { return buffers_.buffers(); }
  void forget();
  /// Whether there is something to restore.
  bool remembers() const { return remembers_; }

 private:
  struct Random {
    at::Generator generator;
    at::Tensor began, seen;  ///< bytes of the state: at `remember`, and when last looked at
  };
  bool drawn_since() const;

  UndoLog buffers_;
  std::vector<Random> random_;
  bool remembers_ = false, drawn_outside_ = false;
  int depth_ = 0;
};

}  // namespace nanquest::attach
