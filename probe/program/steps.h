/// StepFinder: finds the beginning and end of steps in a program that does not announce them.
///
/// It sees only the ops that run and the beginning of backward. A forward pass begins when an op first reads
/// a weight differentiably. An update begins when, after backward, an op writes to a weight. It ends with the
/// last of as many writes as the previous update of the same weights made, and at the latest with the next
/// forward pass. StepFinder is between the observer and the session, and makes the calls that a Python
/// program's hooks would make.
///
/// Used by the training thread; `backward_begins` and `backward_ends` as well.
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
  /// `told` gets every answer of the session, at the end of a step and in between. Both must outlive this
  /// object.
  StepFinder(attach::AttachSession& session, bool records, Told told);

  /// Backward begins at these roots. `accumulates`: into .grad; otherwise the gradients are returned.
  /// `again`: they are differentiated again.
  void backward_begins(const torch::autograd::edge_list& roots, bool accumulates, bool again);
  void backward_ends(bool accumulates, bool again);
  /// The program ends, and with it an update that is still open.
  void program_ends();

  std::unique_ptr<OpFrame> on_start(const OpTraits& op, c10::ArrayRef<const c10::IValue> inputs) override;
  void on_end(const OpTraits& op, OpFrame& frame, c10::ArrayRef<const c10::IValue> outputs) override;
  std::unique_ptr<OpFrame> on_saved_copy(const OpTraits& copy, OpFrame& outer,
                                         c10::ArrayRef<const c10::IValue> inputs) override;
  void on_error(const char* what) override { session_.on_error(what); }

 private:
  using Memories = std::unordered_set<const c10::StorageImpl*>;
  /// The previous update of some weights.
  struct Update {
    Memories written;
    std::size_t writes = 0;
  };
  /// A number from a forward pass from which backward may start.
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
  bool records_;  ///< the session records ops
  Told told_;
  Leaves leaves_;
  bool in_backward_ = false;
  bool passing_ = false;        ///< a forward pass runs, or has run
  bool has_gradients_ = false;  ///< backward ran since the last update
  bool in_grad_ = true;         ///< … and left them in .grad
  bool updating_ = false;
  const at::TensorImpl* pass_leaf_ = nullptr;  ///< the first that the pass has read; used as an address only
  const c10::StorageImpl* first_written_ = nullptr;              ///< of the current or last update
  Update update_;                                                ///< the current one
  std::unordered_map<const c10::StorageImpl*, Update> updates_;  ///< by the weight that they write first
  std::array<Number, 8> numbers_;
  std::size_t next_number_ = 0;
};

}  // namespace nanquest::program
