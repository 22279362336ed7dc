// What the fp32 fallback does to a program's tensors, and that they come back even when the probe has failed.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "probe/attach/formats.h"
#include "probe/attach/session.h"
#include "probe/record/governor.h"

namespace nanquest::attach {
namespace {

TEST(Policy, WhatWasTakenComesBackFromASessionThatIsOff) {
  const std::filesystem::path run =
      std::filesystem::temp_directory_path() / ("nanquest-policy-" + std::to_string(getpid()));
  AttachOptions options;
  options.probe.level = Level::guard;
  options.probe.run_dir = run;
  auto session = AttachSession::start(options);
  ASSERT_TRUE(session) << session.error().text();
  const at::Tensor weight = at::randn({8}).to(at::kBFloat16), buffer = at::zeros({4});
  const at::Tensor before = weight.clone();
  session.value()->remember({buffer});
  ASSERT_EQ(session.value()->widen({weight}, false), "");
  ASSERT_EQ(weight.scalar_type(), at::kFloat);
  buffer.fill_(7);

  session.value()->on_error("planted");
  EXPECT_TRUE(session.value()->put_back());
  session.value()->keep_wide(false);
  EXPECT_EQ(weight.scalar_type(), at::kBFloat16);
  EXPECT_TRUE(at::equal(weight, before));
  EXPECT_TRUE(at::equal(buffer, at::zeros({4})));
  std::filesystem::remove_all(run);
}

TEST(Policy, GradientsCountWhereMemoryIsScarce) {
  // Half of what is free twice: never touched, so never taken.
  const auto half = static_cast<std::int64_t>(free_memory() / 2);
  const at::Tensor weight = at::empty({half / 2}, at::kBFloat16).set_requires_grad(true);
  EXPECT_TRUE(can_widen({weight}));
  weight.mutable_grad() = at::empty({half / 2}, at::kBFloat16);
  const Status both = can_widen({weight});
  ASSERT_FALSE(both);
  EXPECT_NE(both.error().message.find("in fp32 take"), std::string::npos) << both.error().message;
}

}  // namespace
}  // namespace nanquest::attach
