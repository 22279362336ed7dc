/// What becomes of range overflows that later ops hide.
///
/// An op whose result leaves the range of its format, although it is finite one precision up, does harm only
/// if something finite comes out differently because of it: tanh of infinity is 1 as it should be, but
/// 1/sqrt(infinity) is 0 where a number belongs. So such results are followed. Beside the infinite values
/// stand the values that a wider format gives ("what belongs there"); every op that reads them is computed
/// twice in fp64, with the infinities and with what belongs there. Where its real result is finite, both must
/// agree when rounded to its format; where it is not finite, what belongs there goes on.
///
///     HiddenOverflows overflows;
///     overflows.begins(op, made, *run_raised(…));                      // a birth that is finite one up
///     auto reader = overflows.reads(traits…, inputs);                  // before every op
///     overflows.after(std::move(reader), made);                       // after it
///     overflows.harmful(), overflows.harmless()                         // at the end of the step
///
/// Reading NaN or Inf into a loss, a gradient or a weight is no business of this class: that is seen anyway.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

#include "probe/tensor/one_up.h"

namespace nanquest {

/// Not thread-safe: its owner locks. Runs ATen ops, which its owner must keep from being observed. On a device
/// it waits for what it follows.
class HiddenOverflows {
 public:
  /// Numbers of ops, as the owner counts them.
  using Ops = std::set<std::int32_t>;

  HiddenOverflows();
  ~HiddenOverflows();

  /// Op `op` made infinities in `made`, that are finite in `above` (the same op one precision up).
  void begins(std::int32_t op, const OpResults& made, const OpResults& above);

  /// An op that is about to run on values that belong elsewhere.
  struct Reader;
  struct DeleteReader {
    void operator()(Reader* reader) const;
  };
  using ReaderPtr = std::unique_ptr<Reader, DeleteReader>;
  /// Null if the op reads nothing that is followed. `can_repeat` is false for ops that can't be computed a
  /// second time (random, foreign, collective, a compiled region): what they read is followed no further.
  bool any() const { return !followed_.empty(); }
  ReaderPtr reads(const c10::OperatorHandle& op, const std::vector<bool>& argument_written, bool can_repeat,
                  const std::vector<c10::IValue>& inputs);
  /// The op has run; `made` is what it really made, undefined tensors standing for results that are only
  /// views of memory that it was given. `reader` may be null: then what it wrote is as it should be.
  void after(ReaderPtr reader, const OpResults& made);

  /// Ops whose overflow changed a finite result.
  const Ops& harmful() const { return harmful_; }
  /// Ops whose overflow was followed to where it ends, and changed nothing: no memory holds it any more.
  Ops harmless() const;

 private:
  struct Followed;
  using Key = const c10::StorageImpl*;
  Followed* of(const at::Tensor& tensor);
  void follow(const at::Tensor& real, const at::Tensor& belongs, const Ops& causes);
  void compare(const at::Tensor& real, const at::Tensor& with_infinities, const at::Tensor& belongs,
               const Ops& causes);
  /// An op replaced infinities, and NaNs that were numbers.
  void replaced(const Reader& reader, const OpResults& made);
  void lose(const Ops& causes);
  void forget_freed();

  std::unordered_map<Key, Followed> followed_;
  Ops begun_, harmful_, lost_;
  std::uint64_t bytes_ = 0;
};

}  // namespace nanquest
