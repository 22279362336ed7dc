// The operators of FSDP that only copy: they are run again, nothing of what they write is kept, and what they
// give is what PyTorch's documentation says of fully_shard: parts that are put together, and taken apart.
#include "replay/trace/fsdp_copies.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "probe/trace/op_facts.h"
#include "tests/replay/trace/programs.h"

namespace nanquest::testing {
namespace {

std::vector<c10::IValue> call(const char* name, std::vector<c10::IValue> stack) {
  trace::define_fsdp_copies();
  c10::Dispatcher::singleton().findSchemaOrThrow(name, "").callBoxed(stack);
  return stack;
}

using Ints = std::vector<std::int64_t>;
using Tensors = std::vector<at::Tensor>;

/// Two weights, of which this rank, the second of two, has half each; gathered, used, and their gradients
/// made ready for the other.
Step sharded_step() {
  const at::Tensor a = at::arange(6, at::kFloat).view({3, 2}) / 7, b = at::arange(4, at::kFloat) - 1;
  return {{}, [a, b] {
            const at::Tensor buffer = at::empty({20});
            const at::Tensor own =
                call("fsdp::all_gather_copy_in",
                     {Tensors{a.view({-1}), b}, buffer, Ints{6, 4}, std::int64_t{10}, std::int64_t{1}})[0]
                    .toTensor();
            buffer.narrow(0, 0, 10).copy_(own * 3);  // what the gather would bring
            const at::Tensor whole_a = at::empty({2, 6}), whole_b = at::empty({2, 4});
            call("fsdp::split_with_sizes_copy",
                 {buffer.view({2, 10}), Ints{6, 4}, std::int64_t{1}, Tensors{whole_a, whole_b}});
            const at::Tensor ready = at::empty({2, 10});
            call("fsdp::chunk_cat", {Tensors{whole_a.view({6, 2}) * 2, whole_b.view({8}) + 1},
                                     std::int64_t{0}, std::int64_t{2}, ready});
            return (ready * at::arange(20).view({2, 10})).sum();
          }};
}

TEST(FsdpCopies, GiveWhatPlainOperatorsGive) {
  const at::Tensor a = at::arange(6, at::kFloat) / 7, b = at::arange(4, at::kFloat) - 1;
  const at::Tensor own = at::cat({a, b}), all = at::cat({own * 3, own});
  const at::Tensor whole_a = at::cat({a * 3, a}), whole_b = at::cat({b * 3, b});
  const at::Tensor ready = at::stack({at::cat({whole_a.narrow(0, 0, 6) * 2, whole_b.narrow(0, 0, 4) + 1}),
                                      at::cat({whole_a.narrow(0, 6, 6) * 2, whole_b.narrow(0, 4, 4) + 1})});
  const at::Tensor wanted = (ready * at::arange(20).view({2, 10})).sum();
  EXPECT_TRUE(at::equal(sharded_step().run(), wanted));
}

TEST(FsdpCopies, ComeBackBitForBitThoughNothingOfThemIsKept) {
  const Recording recording = record(sharded_step());
  int copies = 0;
  for (const OpRow& op : recording.doc.ops) {
    if (!is_fsdp_copy(op.name)) continue;
    ++copies;
    EXPECT_EQ(op.host_data, "") << op.name;
  }
  EXPECT_EQ(copies, 3);
  const Replayer replayer = replayer_of(recording);
  const VerifyResult result = verify(replayer);
  EXPECT_TRUE(result.bit_exact) << result.first_mismatch;
  EXPECT_EQ(result.opaque_ops, 0);
  EXPECT_EQ(result.failed_ops, 0);
  EXPECT_EQ(replayer.run({}).loss, recording.loss.to(at::kDouble).item<double>());
  EXPECT_EQ(replayer.run({.precision = Precision::fp64}).failed, 0);
}

}  // namespace
}  // namespace nanquest::testing
