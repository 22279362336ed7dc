/// The autograd engine of the process, as it was, with somebody who is told when a backward pass of the
/// program begins and ends.
#pragma once

#include <torch/csrc/autograd/function.h>

namespace nanquest::program {

/// Called on the thread that asks for the pass, not for passes inside of one. Never throws.
class BackwardListener {
 public:
  virtual ~BackwardListener() = default;
  virtual void begins(const torch::autograd::edge_list& roots, bool accumulates, bool again) = 0;
  virtual void ends(bool accumulates, bool again) = 0;
};

/// To be called before the program's first backward pass. `listener` is kept for good.
void listen_to_backward(BackwardListener& listener);

}  // namespace nanquest::program
