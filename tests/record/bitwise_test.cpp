#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>

#include "tests/record/programs.h"

namespace nanquest {
namespace {

using testing::TinyNet;

/// Trains by plain SGD; either every step is recorded or none.
std::vector<at::Tensor> train(bool recorded, at::ScalarType autocast) {
  TinyNet net(3);
  at::manual_seed(11);
  for (int step = 0; step < 12; ++step) {
    net.clear();
    const auto run = [&] {
      if (autocast != at::kFloat) {
        at::autocast::increment_nesting();
        at::autocast::set_autocast_enabled(at::kCPU, true);
        at::autocast::set_autocast_dtype(at::kCPU, autocast);
      }
      at::Tensor loss = net.loss();
      if (autocast != at::kFloat) {
        at::autocast::set_autocast_enabled(at::kCPU, false);
        if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
      }
      loss.backward();
      return loss;
    };
    if (recorded) {
      const Recording rec = record_step(net.state(), run);
      EXPECT_TRUE(rec.notes.empty());
      EXPECT_GT(rec.doc.ops.size(), 10u);
    } else {
      run();
    }
    const at::NoGradGuard no_grad;
    for (at::Tensor* p : {&net.w1, &net.b1, &net.w2}) p->sub_(p->grad() * 0.1);
  }
  return {net.w1.detach(), net.b1.detach(), net.w2.detach()};
}

class Bitwise : public ::testing::TestWithParam<at::ScalarType> {};

TEST_P(Bitwise, RecordingChangesNoBit) {
  const auto plain = train(false, GetParam());
  const auto recorded = train(true, GetParam());
  for (std::size_t i = 0; i < plain.size(); ++i)
    EXPECT_TRUE(at::equal(plain[i], recorded[i])) << "parameter " << i;
}

INSTANTIATE_TEST_SUITE_P(Formats, Bitwise, ::testing::Values(at::kFloat, at::kBFloat16, at::kHalf));

}  // namespace
}  // namespace nanquest
