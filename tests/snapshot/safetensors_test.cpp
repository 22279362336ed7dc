#include "probe/snapshot/safetensors.h"

#include <gtest/gtest.h>

namespace nanquest {
namespace {

TEST(SafetensorsHead, IsTheFormatToTheByte) {
  const std::string json =
      R"({"__metadata__":{"a":"1"},"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
      R"("s \"x\"":{"dtype":"BF16","shape":[],"data_offsets":[24,26]}})";
  const std::string head =
      safetensors_head({{"w", "F32", {2, 3}, 24}, {"s \"x\"", "BF16", {}, 2}}, {{"a", "1"}});
  ASSERT_EQ(head.size() % 8, 0u);
  EXPECT_EQ(head.substr(0, 8), std::string(1, static_cast<char>(head.size() - 8)) + std::string(7, '\0'));
  EXPECT_EQ(head.substr(8), json + std::string(head.size() - 8 - json.size(), ' '));
  EXPECT_LT(head.size() - 8 - json.size(), 8u);
}

TEST(SafetensorsHead, OfNothing) {
  EXPECT_EQ(safetensors_head({}, {}), std::string("\x08\0\0\0\0\0\0\0{}      ", 16));
}

}  // namespace
}  // namespace nanquest
