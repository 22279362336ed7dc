/// A scope whose operations are not the training's.
#pragma once

namespace nanquest {

/// ATen calls of this thread are not observed while one of these lives. May nest. For what a program measures
/// beside its training (a held-out loss, statistics of gradients): on a tape (ProbeOptions::tape) it would be
/// run again with every change, and a number that it reads would count as a decision. What such a scope
/// writes into the training's own tensors nobody knows of.
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
