/// Follows range overflows that later ops hide.
///
/// Suppose the result of an op leaves the range of its format but is finite one precision up. That is harmful
/// only if a finite value comes out differently because of it: tanh of infinity is 1, as it should be, but
/// 1/sqrt(infinity) is 0 instead of a number. So such results are followed. Beside the infinite values this
/// class keeps the values that a wider format gives (the correct values). Every op that reads them is
/// computed twice in fp64: with the infinities and with the correct values. If its real result is finite,
/// both must agree after rounding to its format. If it is not finite, the correct result is followed further.
///
///     HiddenOverflows overflows;
///     overflows.begins(op, made, *run_raised(…));                      // a birth that is finite one up
///     auto reader = overflows.reads(traits…, inputs);                  // before every op
///     overflows.after(std::move(reader), made);                       // after it
///     overflows.harmful(), overflows.harmless()                         // at the end of the step
///
/// NaN or Inf that is read into a loss, a gradient or a weight is not handled here: other checks find it.
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

/// Not thread-safe: its owner locks. Runs ATen ops, which its owner must not observe. On a device it waits
/// for the values that it follows.
class HiddenOverflows {
 public:
  /// Op numbers of the owner.
  using Ops = std::set<std::int32_t>;

  HiddenOverflows();
  ~HiddenOverflows();

  /// Op `op` made infinities in `made` that are finite in `above` (the same op one precision up).
  void begins(std::int32_t op, const OpResults& made, const OpResults& above);

  /// An op that is about to read followed values.
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
  /// The op has run. `made` is what it really made; undefined tensors stand for results that are only views
  /// of memory that it was given. `reader` may be null: then everything that it wrote is correct.
  void after(ReaderPtr reader, const OpResults& made);

  /// Ops whose overflow changed a finite result.
  const Ops& harmful() const { return harmful_; }
  /// Ops whose overflow was followed to its end and changed nothing: no memory holds it any more.
  Ops harmless() const;

 private:
  struct Followed;
  using Key = const c10::StorageImpl*;
  Followed* of(const at::Tensor& tensor);
  void follow(const at::Tensor& real, const at::Tensor& belongs, const Ops& causes);
  void compare(const at::Tensor& real, const at::Tensor& with_infinities, const at::Tensor& belongs,
               const Ops& causes);
  /// An op replaced infinities, and NaNs in place of numbers.
  void replaced(const Reader& reader, const OpResults& made);
  void lose(const Ops& causes);
  void forget_freed();

  std::unordered_map<Key, Followed> followed_;
  Ops begun_, harmful_, lost_;
  std::uint64_t bytes_ = 0;
};

}  // namespace nanquest
