#include <gtest/gtest.h>

#include <ATen/Parallel.h>

#include <limits>
#include <set>

#include "tests/record/programs.h"

namespace nanquest {
namespace {

using testing::find_op;
using testing::leaf;
using testing::module_of;
using testing::TinyNet;

TEST(Record, KeepsFrontierOpsOnly) {
  TinyNet net;
  const Recording rec = record_step(net.state(), [&] { return net.step(); });
  ASSERT_TRUE(rec.notes.empty()) << rec.notes.front();
  // linear, dropout, cross_entropy_loss and relu's parents are composites: their parts are recorded.
  for (const OpRow& op : rec.doc.ops)
    for (const char* composite :
         {"aten::linear", "aten::dropout", "aten::cross_entropy_loss", "aten::nll_loss"})
      EXPECT_NE(op.name, composite);
  EXPECT_TRUE(find_op(rec.doc, "aten::addmm"));
  EXPECT_TRUE(find_op(rec.doc, "aten::_log_softmax"));
  EXPECT_TRUE(find_op(rec.doc, "aten::nll_loss_forward"));
  EXPECT_TRUE(find_op(rec.doc, "aten::mm", Phase::backward));
}

TEST(Record, NamesModulesForwardAndBackward) {
  TinyNet net;
  const Recording rec = record_step(net.state(), [&] { return net.step(); });
  const OpRow* forward = find_op(rec.doc, "aten::addmm");
  ASSERT_TRUE(forward);
  EXPECT_EQ(module_of(rec.doc, *forward), "hidden");
  const OpRow* backward = find_op(rec.doc, "aten::threshold_backward", Phase::backward);
  ASSERT_TRUE(backward);
  EXPECT_EQ(backward->node, "ReluBackward0");
  EXPECT_EQ(module_of(rec.doc, *backward), "hidden");
  ASSERT_NE(backward->forward_op, kNone);
  EXPECT_EQ(rec.doc.ops[static_cast<std::size_t>(backward->forward_op)].name, "aten::relu");
}

TEST(Record, SeededOpsKeepTheGeneratorState) {
  TinyNet net;
  const Recording rec = record_step(net.state(), [&] { return net.step(); });
  int seeded = 0;
  for (const OpRow& op : rec.doc.ops)
    if (op.flags & kOpSeeded) {
      ++seeded;
      ASSERT_GE(op.rng, 0);
      EXPECT_LT(static_cast<std::size_t>(op.rng), rec.doc.rng_states.size());
    }
  EXPECT_EQ(seeded, 1);
}

TEST(Record, StatisticsAgreeWithTheTensors) {
  const at::Tensor x = at::arange(12, at::kFloat).view({3, 4}) - 5;
  StepState state;
  state.batch = {{"x", x}};
  const at::Tensor expected = x.exp().t();
  const Recording rec = record_step(state, [&] { return x.exp().t().neg().sum(); });
  const OpRow* neg = find_op(rec.doc, "aten::neg");
  ASSERT_TRUE(neg);
  const TensorRow& row =
      rec.doc
          .tensors[static_cast<std::size_t>(rec.doc.args[static_cast<std::size_t>(neg->first_arg)].tensor)];
  ASSERT_NE(row.stats, kNone);
  const StatsRow& stats = rec.doc.stats[static_cast<std::size_t>(row.stats)];
  EXPECT_EQ(stats.count, 12u);
  EXPECT_EQ(stats.amax, expected.abs().max().item<double>());
  EXPECT_NEAR(stats.sum_squares, expected.to(at::kDouble).pow(2).sum().item<double>(), 1e-6);
  // exp's output was hashed in another order than neg reads it.
  EXPECT_FALSE(stats.has_hash);
  for (const std::int32_t written : rec.doc.written)
    EXPECT_TRUE(
        rec.doc.stats[static_cast<std::size_t>(rec.doc.tensors[static_cast<std::size_t>(written)].stats)]
            .has_hash);
}

/// Statistics of the first input of the first op of that name.
StatsRow stats_read_by(const SnapshotDoc& doc, const char* name) {
  const OpRow* op = find_op(doc, name);
  if (!op) return {};
  const std::int32_t row = doc.args[static_cast<std::size_t>(op->first_arg)].tensor;
  return doc.stats[static_cast<std::size_t>(doc.tensors[static_cast<std::size_t>(row)].stats)];
}

TEST(Record, ViewsOfKnownMemoryHaveTheirOwnStatistics) {
  at::Tensor x = at::arange(12, at::kFloat).view({3, 4}) - 5;
  x[1][2] = std::numeric_limits<float>::quiet_NaN();
  const Recording rec = record_step({}, [&] {
    const at::Tensor y = x * 2;
    y.t().neg();                          // the same elements in another order: the bad one has another index
    y.reshape({12}).abs();                // the same elements in the same order
    y.slice(1, 0, 2).sin();               // a part of them
    return y.slice(0, 2, 3).cos().sum();  // a dense part that begins elsewhere
  });
  EXPECT_EQ(stats_read_by(rec.doc, "aten::neg").first_bad, 2 * 3 + 1);
  EXPECT_EQ(stats_read_by(rec.doc, "aten::abs").first_bad, 1 * 4 + 2);
  EXPECT_EQ(stats_read_by(rec.doc, "aten::sin").count, 6u);
  EXPECT_EQ(stats_read_by(rec.doc, "aten::sin").nan, 0u);
  EXPECT_EQ(stats_read_by(rec.doc, "aten::sin").amax, 10);
  EXPECT_EQ(stats_read_by(rec.doc, "aten::cos").count, 4u);
  EXPECT_EQ(stats_read_by(rec.doc, "aten::cos").amax, 12);
}

TEST(Record, ManyTensorsOfOneOpAreLookedAtByAllThreadsWithTheSameResult) {
  const int threads = at::get_num_threads();
  std::vector<at::Tensor> start;
  for (int i = 0; i < 5; ++i) start.push_back(at::randn({1 + i, 1 << 17}));
  start[3].view(-1)[77] = std::numeric_limits<float>::infinity();
  const auto rows = [&](int used) {
    at::set_num_threads(used);
    std::vector<at::Tensor> values, others;
    for (const at::Tensor& t : start) values.push_back(t.clone());
    for (const at::Tensor& t : start) others.push_back(t.t().contiguous().t());
    const Recording rec = record_step({}, [&] {
      at::_foreach_add_(values, others);
      return at::_foreach_sqrt(values)[2].sum();
    });
    std::vector<std::vector<double>> seen;
    for (const TensorRow& row : rec.doc.tensors) {
      if (row.stats == kNone) continue;
      const StatsRow& s = rec.doc.stats[static_cast<std::size_t>(row.stats)];
      seen.push_back({static_cast<double>(s.count), static_cast<double>(s.nan),
                      static_cast<double>(s.pos_inf), static_cast<double>(s.first_bad), s.amax, s.sum_squares,
                      static_cast<double>(s.has_hash), static_cast<double>(s.hash >> 12)});
    }
    return seen;
  };
  const auto alone = rows(1), together = rows(2);
  at::set_num_threads(threads);
  EXPECT_GT(alone.size(), 15u);
  EXPECT_EQ(alone, together);
}

TEST(Record, ValuesWrittenBehindTheDispatcherBecomeHostWrites) {
  StepState state;
  const Recording rec = record_step(state, [&] {
    at::Tensor t = at::empty({3});
    t.data_ptr<float>()[0] = 1;
    t.data_ptr<float>()[1] = 2;
    t.data_ptr<float>()[2] = 3;
    return t.mul(2).sum();
  });
  const OpRow* write = find_op(rec.doc, "nanquest::host_write");
  ASSERT_TRUE(write);
  bool found = false;
  for (const auto& [path, data] : rec.data)
    if (path == write->host_data) {
      found = true;
      EXPECT_TRUE(at::equal(data, at::tensor({1.f, 2.f, 3.f})));
    }
  EXPECT_TRUE(found);
}

TEST(Record, OutsideValuesAreCopiedBeforeTheyChange) {
  at::Tensor counter = at::ones({4});
  const Recording rec = record_step({}, [&] { return counter.add_(1).sum(); });
  ASSERT_FALSE(rec.doc.slots.empty());
  const Slot& slot = rec.doc.slots.front();
  EXPECT_EQ(slot.origin, SlotOrigin::external);
  bool found = false;
  for (const auto& [path, data] : rec.data)
    found = found || (path == slot.data && at::equal(data, at::ones({4})));
  EXPECT_TRUE(found);
  EXPECT_TRUE(at::equal(counter, at::full({4}, 2)));
}

TEST(Record, WrappedNumbersKeepTheirFlag) {
  const at::Tensor x = at::ones({2});
  const Recording rec = record_step({}, [&] { return x.add(1e-6).sum(); });
  bool flagged = false;
  for (const TensorRow& row : rec.doc.tensors) flagged = flagged || (row.flags & kTensorWrappedNumber);
  const OpRow* add = find_op(rec.doc, "aten::add");
  ASSERT_TRUE(add);
  // add.Tensor boxes the number as a 0-dim tensor, add.Scalar as a real: both mark it as a number.
  EXPECT_TRUE(flagged || rec.doc.args[static_cast<std::size_t>(add->first_arg + 1)].kind == ArgKind::real);
}

TEST(Record, AThrowingStepIsRecordedUpToTheThrow) {
  const at::Tensor a = at::ones({2, 3}), b = at::ones({2, 3});
  const Recording rec = record_step({}, [&] { return a.add(b).mm(b); });
  EXPECT_NE(rec.failure.find("mat1 and mat2"), std::string::npos) << rec.failure;
  EXPECT_TRUE(find_op(rec.doc, "aten::add"));
}

TEST(Record, OneRecordingAtATime) {
  const at::Tensor a = at::ones({2});
  Recording inner;
  const Recording outer = record_step({}, [&] {
    inner = record_step({}, [&] { return a.sum(); });
    return a.mul(3).sum();
  });
  ASSERT_FALSE(inner.notes.empty());
  EXPECT_NE(inner.notes.front().find("another recording"), std::string::npos);
  EXPECT_TRUE(find_op(outer.doc, "aten::mul"));
}

TEST(Record, SlotsAreNeverConfusedWhenMemoryIsReused) {
  const at::Tensor x = at::randn({1024});
  const Recording rec = record_step({}, [&] {
    at::Tensor total = at::zeros({});
    for (int i = 0; i < 50; ++i)
      total = total + (x * i).sum();  // freed temporaries make their addresses available again
    return total;
  });
  std::set<std::int32_t> produced;
  for (const OpRow& op : rec.doc.ops)
    for (std::int32_t i = 0; i < op.written_count; ++i) {
      const std::int32_t row = rec.doc.written[static_cast<std::size_t>(op.first_written + i)];
      EXPECT_TRUE(produced.insert(rec.doc.tensors[static_cast<std::size_t>(row)].slot).second) << op.name;
    }
  EXPECT_GE(produced.size(), 150u);
}

TEST(Record, GradientsAndLossAreDescribed) {
  TinyNet net;
  const Recording rec = record_step(net.state(), [&] { return net.step(); });
  ASSERT_EQ(rec.doc.gradients.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_NE(rec.doc.gradients[i], kNone);
    const TensorRow& row = rec.doc.tensors[static_cast<std::size_t>(rec.doc.gradients[i])];
    const at::Tensor grad = net.state().parameters[i].second.grad();
    EXPECT_EQ(row.sizes, grad.sizes().vec());
    EXPECT_NEAR(rec.doc.stats[static_cast<std::size_t>(row.stats)].sum_squares,
                grad.to(at::kDouble).pow(2).sum().item<double>(), 1e-9);
  }
  ASSERT_NE(rec.doc.loss, kNone);
}

}  // namespace
}  // namespace nanquest
