// A number of the optimizer's ops and the setting that it is.
#include "replay/diff/optimizer_settings.h"

#include <gtest/gtest.h>

namespace nanquest::diff {
namespace {

SnapshotDoc with(const char* first, const char* second = "") {
  SnapshotDoc doc;
  doc.environment["num_threads"] = "1e-08";
  if (*first != 0) doc.environment["optimizer.0"] = first;
  if (*second != 0) doc.environment["optimizer.1"] = second;
  return doc;
}

TEST(OptimizerSettings, TheOneSettingThatHasBothNumbers) {
  const SnapshotDoc
      a = with(R"([{"eps": "1e-08", "weight_decay": "0.1"}, {"eps": "1e-08", "weight_decay": "0"}])"),
      b = with(R"([{"eps": "1e-05", "weight_decay": "0.1"}, {"eps": "1e-05", "weight_decay": "0"}])");
  EXPECT_EQ(setting_that_differs(a, b, "1e-08", "1e-05"), "eps");
  EXPECT_EQ(setting_that_differs(a, b, "1e-05", "1e-08"), "") << "the other way round";
  EXPECT_EQ(setting_that_differs(a, b, "0.1", "0"), "") << "of two groups";
  EXPECT_EQ(setting_that_differs(a, with("", R"([{"eps": "1e-05"}])"), "1e-08", "1e-05"), "")
      << "of two optimizers";
}

TEST(OptimizerSettings, TwoThatFitAreNone) {
  EXPECT_EQ(setting_that_differs(with(R"([{"eps": "1", "momentum": "1"}])"),
                                 with(R"([{"eps": "2", "momentum": "2"}])"), "1", "2"),
            "");
}

TEST(OptimizerSettings, WhatCanNotBeReadIsNone) {
  for (const char* text : {"", "{", "[1]", "[{\"eps\": 1}]", "{\"eps\": \"1\"}"})
    EXPECT_EQ(setting_that_differs(with(text), with(R"([{"eps": "2"}])"), "1", "2"), "") << text;
}

}  // namespace
}  // namespace nanquest::diff
