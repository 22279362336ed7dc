/// A scope whose operations do not belong to the training.
#pragma once

namespace nanquest {

/// ATen calls of this thread are not observed while one of these exists. May nest. For measurements beside
/// the training (a held-out loss, statistics of gradients): on a tape (ProbeOptions::tape) they would be run
/// again with every change, and a number that they read would count as a decision. Writes of such a scope
/// into the training's own tensors are not recorded.
class ObserverPause {
 public:
  ObserverPause();
  ~ObserverPause();
  ObserverPause(const ObserverPause&) = delete;
  ObserverPause& operator=(const ObserverPause&) = delete;

 private:
  bool before_;
};

}  // namespace nanquest
