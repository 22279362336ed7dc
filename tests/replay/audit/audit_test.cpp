// An audit: what a healthy step's recorded hashes show about the machine, and what they don't.
#include "replay/audit/audit.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>

#include "probe/numerics/hash.h"
#include "probe/record/record.h"

namespace nanquest {
namespace {

/// Audit of a healthy step in which `damage` changed the statistics of what the op `name` wrote; `value` is
/// what it writes here.
Audit audited(const std::string& name,
              const std::function<void(StatsRow& stats, const at::Tensor& value)>& damage,
              const std::function<void(SnapshotDoc&)>& more = {}) {
  at::manual_seed(3);
  const at::Tensor w = (at::rand({4, 4}) + 1).set_requires_grad(true), x = at::rand({4, 4});
  StepState state;
  state.parameters = {{"w", w}};
  state.batch = {{"x", x}};
  at::Tensor hidden;
  Recording recording = record_step(state, [&] {
    const at::Tensor h = at::exp(at::mm(x + 1, w));
    hidden = h.detach().clone();
    const at::Tensor loss = h.sum();
    loss.backward();
    return loss;
  });
  SnapshotDoc doc = recording.doc;
  for (const OpRow& op : doc.ops) {
    if (op.name != name) continue;
    const std::int32_t written = doc.written[static_cast<std::size_t>(op.first_written)];
    damage(doc.stats[static_cast<std::size_t>(doc.tensors[static_cast<std::size_t>(written)].stats)], hidden);
    break;
  }
  if (more) more(doc);
  const auto replayer = Replayer::from_memory(doc, {recording.data.begin(), recording.data.end()});
  EXPECT_TRUE(replayer.ok());
  return audit(*replayer);
}

void other_hash(StatsRow& stats, const at::Tensor&) {
  stats.hash ^= 1;
}

TEST(Audit, AStepThatComesBackIsTheSame) {
  const Audit found = audited("aten::exp", [](StatsRow&, const at::Tensor&) {});
  EXPECT_EQ(found.answer, AuditAnswer::same) << found.why;
  EXPECT_GT(found.compared, 3);
}

TEST(Audit, OneBitIsNamedFromTheHashAlone) {
  const Audit found = audited("aten::exp", [](StatsRow& stats, const at::Tensor& value) {
    at::Tensor wrong = value.clone();
    wrong.view(at::kInt).flatten()[6].bitwise_xor_(1 << 20);
    stats.hash = hash_contents(wrong.const_data_ptr(), wrong.nbytes());
  });
  ASSERT_EQ(found.answer, AuditAnswer::hardware) << found.why;
  ASSERT_TRUE(found.bit);
  EXPECT_EQ(found.bit->element, 6);
  EXPECT_EQ(found.bit->bit, 20);
  EXPECT_NE(found.bit->here, found.bit->recorded);
}

TEST(Audit, OtherValuesAreHardwareWithoutABit) {
  const Audit found = audited("aten::mm", other_hash);
  EXPECT_EQ(found.answer, AuditAnswer::hardware) << found.why;
  EXPECT_FALSE(found.bit);
}

TEST(Audit, WhatAnythingElseMayExplainIsUnknown) {
  EXPECT_EQ(audited("aten::add", other_hash).answer, AuditAnswer::unknown);  // it reads the batch
  for (const char* key : {"torch_version", "num_threads", "cpu_capability"})
    EXPECT_EQ(audited("aten::exp", other_hash, [&](SnapshotDoc& doc) { doc.environment[key] = "3"; }).answer,
              AuditAnswer::unknown)
        << key;
  EXPECT_EQ(audited("aten::exp", other_hash, [](SnapshotDoc& doc) { doc.basis = "survivors"; }).answer,
            AuditAnswer::unknown);
}

}  // namespace
}  // namespace nanquest
