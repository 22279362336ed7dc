// Hashes of parts of weights: those that hash.h defines, of the bytes that were asked for, and nothing of
// what can't be read.
#include "probe/attach/replicas.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "probe/numerics/hash.h"

namespace nanquest::attach {
namespace {

std::int64_t hash_of(const at::Tensor& tensor, std::size_t begin, std::size_t bytes) {
  return static_cast<std::int64_t>(
      hash_contents(static_cast<const char*>(tensor.const_data_ptr()) + begin, bytes));
}

TEST(HashesOfParts, AreThoseOfTheBytes) {
  const at::Tensor weight = at::rand({300, 1000});
  const auto all = static_cast<std::int64_t>(weight.nbytes());
  const auto hashes = hashes_of_parts({weight, weight, weight}, {0, 4096, all - 8}, {all, 100, 4096});
  EXPECT_EQ(hashes,
            (std::vector<std::int64_t>{hash_of(weight, 0, weight.nbytes()), hash_of(weight, 4096, 100),
                                       hash_of(weight, weight.nbytes() - 8, 8)}));
  at::Tensor other = weight.clone();
  other.view(at::kInt)[3][7].bitwise_xor_(1);
  const auto changed = hashes_of_parts({other, other, other}, {0, 4096, all - 8}, {all, 100, 4096});
  EXPECT_NE(changed[0], hashes[0]);
  EXPECT_EQ(changed[1], hashes[1]);
}

TEST(HashesOfParts, OfZerosIsZeroAndOfNegativeZerosIsNot) {
  const at::Tensor zeros = at::zeros({1000});
  const auto hashes = hashes_of_parts({zeros, -zeros, at::empty({0})}, {0, 0, 0}, {4000, 4000, 4000});
  ASSERT_EQ(hashes.size(), 3u);
  EXPECT_EQ(hashes[0], 0);
  EXPECT_NE(hashes[1], 0);
  EXPECT_EQ(hashes[2], 0);
}

TEST(HashesOfParts, AreNoneWhereMemoryIsNotDenseOrNotHere) {
  const at::Tensor weight = at::rand({8, 8});
  EXPECT_EQ(hashes_of_parts({weight, weight.t()}, {0, 0}, {256, 256}).size(), 2u);
  for (const at::Tensor& other :
       {weight.slice(1, 0, 4), weight.to(at::kMeta), weight.to_sparse(), at::Tensor()})
    EXPECT_TRUE(hashes_of_parts({weight, other}, {0, 0}, {256, 256}).empty());
  EXPECT_TRUE(hashes_of_parts({weight}, {0, 0}, {256}).empty());
}

}  // namespace
}  // namespace nanquest::attach
