/// The process's autograd engine, unchanged, with a listener for the beginning and end of the program's
/// backward passes.
#pragma once

#include <torch/csrc/autograd/function.h>

namespace nanquest::program {

/// Called on the thread that starts the pass, not for nested passes. Must not throw.
class BackwardListener {
 public:
  virtual ~BackwardListener() = default;
  virtual void begins(const torch::autograd::edge_list& roots, bool accumulates, bool again) = 0;
  virtual void ends(bool accumulates, bool again) = 0;
};

/// To be called before the program's first backward pass. `listener` must exist until the process ends.
void listen_to_backward(BackwardListener& listener);

}  // namespace nanquest::program
