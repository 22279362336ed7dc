// Where the values of a tape lie, of a device that has less room for them than the host.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "probe/record/governor.h"
#include "probe/record/tape_values.h"
#include "tests/device/backend/memory.h"

namespace nqdev {
namespace {

const at::Device kFirst("nqdev:0");

TEST(TapeValues, AreOnTheDeviceAsLongAsItsShareAllows) {
  const double share = 0.01;  // about 20 MB there, and more than that of the host
  ASSERT_GT(share * static_cast<double>(nanquest::free_memory()), 0.02 * kDeviceBytes);
  nanquest::record::TapeValues values({.share = share});
  const at::Tensor large = at::randn({3 << 20}).to(kFirst), expected = large.cpu();
  const auto first = values.copy(large.storage(), large.nbytes()),
             second = values.copy(large.storage(), large.nbytes());
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->bytes.device(), kFirst);
  EXPECT_TRUE(second->bytes.is_cpu()) << "24 MB are above the share";
  large.zero_();
  for (const auto& copy : {first, second})
    EXPECT_TRUE(at::equal(copy->bytes.cpu().view(at::kFloat), expected));
  EXPECT_EQ(values.held(), 2 * large.nbytes());
}

TEST(TapeValues, OfADeviceAreFilesToo) {
  const std::string folder = ::testing::TempDir() + "nanquest-device-tape";
  std::filesystem::create_directory(folder);
  nanquest::record::TapeValues values({.share = 0.1, .folder = folder});
  const at::Tensor large = at::randn({1 << 19}).to(kFirst), small = at::randn({16}).to(kFirst),
                   expected = large.cpu();
  const auto file = values.copy(large.storage(), large.nbytes()),
             memory = values.copy(small.storage(), small.nbytes());
  ASSERT_TRUE(file && memory) << values.why();
  large.zero_();
  EXPECT_TRUE(file->bytes.is_cpu());
  EXPECT_TRUE(at::equal(file->bytes.view(at::kFloat), expected));
  EXPECT_EQ(memory->bytes.device(), kFirst);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  std::filesystem::remove(folder);
}

}  // namespace
}  // namespace nqdev
