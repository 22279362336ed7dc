#include "probe/observe/module_scope.h"

#include <gtest/gtest.h>

#include <thread>

namespace nanquest {
namespace {

TEST(ModuleScope, PathsNestAndUnwind) {
  EXPECT_EQ(current_module_path(), "");
  {
    const ModuleScope outer("blocks.3", "Block");
    {
      const ModuleScope inner("attention", "Attention");
      EXPECT_EQ(current_module_path(), "blocks.3.attention");
      EXPECT_EQ(current_module_type(), "Attention");
    }
    EXPECT_EQ(current_module_path(), "blocks.3");
    EXPECT_EQ(current_module_type(), "Block");
  }
  EXPECT_EQ(current_module_path(), "");
  EXPECT_EQ(current_module_type(), "");
}

TEST(ModuleScope, UnwindsThroughExceptions) {
  try {
    const ModuleScope scope("broken");
    throw 1;
  } catch (int) {
  }
  EXPECT_EQ(current_module_path(), "");
}

TEST(ModuleScope, EveryThreadHasItsOwn) {
  const ModuleScope scope("main");
  std::string seen = "unset";
  std::thread([&] { seen = std::string(current_module_path()); }).join();
  EXPECT_EQ(seen, "");
}

}  // namespace
}  // namespace nanquest
