/// StepFinder: where the steps of a program begin and end that tells nothing of itself.
///
/// All it has are the ops that run and when backward begins. A forward pass begins where an op first reads a
/// weight differentiably; an update begins where, after backward, somebody writes to a weight, and is over
/// with the last of as many writes as the update of the same weights took last time, at the latest with the
/// next forward pass. It stands between the observer and the session, which is told what a Python program's
/// hooks would tell it.
///
/// Of the thread that trains; `backward_begins` and `backward_ends` as well.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "probe/attach/session.h"
#include "probe/observe/observer.h"
#include "probe/program/leaves.h"

namespace nanquest::program {

class StepFinder final : public OpSink {
 public:
  using Told = std::function<void(const attach::StepAnswer&)>;
  /// `told` gets every answer of the session, at the end of a step and in between. Both outlive this.
  StepFinder(attach::AttachSession& session, bool records, Told told);

  /// Backward begins at these. `accumulates`: into .grad; otherwise the gradients are returned. `again`: they
  /// are differentiated again.
  void backward_begins(const torch::autograd::edge_list& roots, bool accumulates, bool again);
  void backward_ends(bool accumulates, bool again);
  /// The program ends: an update that nobody has followed is over.
  void program_ends();

  std::unique_ptr<OpFrame> on_start(const OpTraits& op, c10::ArrayRef<const c10::IValue> inputs) override;
  void on_end(const OpTraits& op, OpFrame& frame, c10::ArrayRef<const c10::IValue> outputs) override;
  std::unique_ptr<OpFrame> on_saved_copy(const OpTraits& copy, OpFrame& outer,
                                         c10::ArrayRef<const c10::IValue> inputs) override;
  void on_error(const char* what) override { session_.on_error(what); }

 private:
  using Memories = std::unordered_set<const c10::StorageImpl*>;
  /// What an update of some weights was like the last time.
  struct Update {
    Memories written;
    std::size_t writes = 0;
  };
  /// A number that a forward pass gave and that backward may start from.
  struct Number {
    const torch::autograd::Node* made_by = nullptr;
    at::Tensor value;  ///< without its graph
  };

  void look(const OpTraits& op, c10::ArrayRef<const c10::IValue> inputs);
  /// True if the op writes to a weight.
  bool write(const OpTraits& op, const c10::IValue& first, c10::ArrayRef<const c10::IValue> inputs);
  void read(const at::Tensor& leaf);
  void begin_pass();
  void begin_update(const c10::StorageImpl* first, double rate);
  void end_update();
  void note_number(const at::Tensor& output);

  attach::AttachSession& session_;
  bool records_;  ///< the session takes in ops
  Told told_;
  Leaves leaves_;
  bool in_backward_ = false;
  bool passing_ = false;        ///< a forward pass runs, or has run
  bool has_gradients_ = false;  ///< backward ran since the last update
  bool in_grad_ = true;         ///< … and left them in .grad
  bool updating_ = false;
  const at::TensorImpl* pass_leaf_ = nullptr;        ///< the first that the pass has read; an address only
  const c10::StorageImpl* first_written_ = nullptr;  ///< of the update that runs or was made last
  Update update_;                                    ///< the one that runs
  std::unordered_map<const c10::StorageImpl*, Update> updates_;  ///< by the weight that they write first
  std::array<Number, 8> numbers_;
  std::size_t next_number_ = 0;
};

}  // namespace nanquest::program
