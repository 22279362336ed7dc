#include "probe/numerics/hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "probe/numerics/implementation.h"
#include "probe/numerics/scan.h"
#include "tests/numerics/byte_pattern.h"

namespace nanquest {
namespace {

using testing::pattern;

// From a Python implementation of hash.h's definition with unbounded integers. Snapshots hold these hashes:
// if this fails, the code is wrong, never the table.
TEST(Hash, KnownAnswersNeverChange) {
  const struct {
    std::size_t bytes;
    std::uint64_t hash;
  } answers[] = {
      {0, 0x3870a8378f9ac363ULL},    {1, 0x5a37420b4523c3fcULL},    {7, 0x5a211dc7c183fec8ULL},
      {8, 0xc144a88cbb1fd22dULL},    {63, 0xa83ead39f08386acULL},   {64, 0x3a7916e582542c15ULL},
      {65, 0x727a86684bb985e5ULL},   {1023, 0xed67ad73b370df43ULL}, {1024, 0x7ff850fcf40905a5ULL},
      {1025, 0x99cd628c1b7ca87bULL}, {2048, 0xf3f8658d6f9092d9ULL}, {5000, 0x979318912bf03398ULL},
  };
  for (const auto& answer : answers) {
    const auto bytes = pattern(answer.bytes);
    EXPECT_EQ(hash_bytes(bytes.data(), bytes.size()), answer.hash) << answer.bytes << " bytes";
  }
}

// From the same Python program, which cuts and joins the parts itself.
TEST(Hash, KnownAnswersOfContentsNeverChange) {
  const struct {
    std::size_t bytes;
    std::uint64_t hash;
  } answers[] = {
      {0, 0x3870a8378f9ac363ULL},       {5000, 0x979318912bf03398ULL},    {524287, 0xf8aa9f192d7743a1ULL},
      {524288, 0x781771dc1ed1ab9cULL},  {524289, 0x43115885aca78465ULL},  {1048576, 0xf6e263f816b0578bULL},
      {1048577, 0x7d015bae2555e3ceULL}, {1572869, 0x2200fef17bdadb36ULL},
  };
  for (const auto& answer : answers) {
    const auto bytes = pattern(answer.bytes);
    EXPECT_EQ(hash_contents(bytes.data(), bytes.size()), answer.hash) << answer.bytes << " bytes";
    EXPECT_EQ(ContentsHash().finish(bytes.data(), bytes.size()), answer.hash) << answer.bytes << " bytes";
    EXPECT_EQ(scan_and_hash(DType::uint8, bytes.data(), bytes.size()).hash, answer.hash)
        << answer.bytes << " bytes";
  }
}

TEST(Hash, ContentsOfManyPartsInPiecesOfAnySize) {
  const auto bytes = pattern(130 * kHashPart + 77);  // more parts than a block has room for hashes
  std::vector<std::uint64_t> parts;
  for (std::size_t at = 0; at < bytes.size(); at += kHashPart)
    parts.push_back(hash_bytes(bytes.data() + at, std::min(kHashPart, bytes.size() - at)));
  const std::uint64_t want = hash_bytes(parts.data(), parts.size() * sizeof parts[0]);
  EXPECT_EQ(hash_contents(bytes.data(), bytes.size()), want);
  for (const std::size_t blocks : {3u, 512u, 700u}) {
    ContentsHash state;
    std::size_t at = 0;
    for (; bytes.size() - at >= blocks * kHashBlock; at += blocks * kHashBlock)
      state.add_blocks(bytes.data() + at, blocks);
    EXPECT_EQ(state.finish(bytes.data() + at, bytes.size() - at), want) << blocks;
  }
  // Parts that change places change the hash.
  auto first = bytes, second = bytes;
  ++first[5];
  ++second[kHashPart + 5];
  EXPECT_NE(hash_contents(first.data(), first.size()), want);
  EXPECT_NE(hash_contents(first.data(), first.size()), hash_contents(second.data(), second.size()));
}

TEST(Hash, EveryTableOfKernelsAddsTheSameBlocks) {
  const auto bytes = pattern(10 * kHashBlock);
  std::vector<std::uint64_t> keys(152);
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = i * 0x9e3779b97f4a7c15ULL + 99;
  std::uint64_t want[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  detail::kBase.hash_blocks(bytes.data(), 10, keys.data(), want);
  for (const detail::Implementation* with : detail::implementations()) {
    std::uint64_t got[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    with->hash_blocks(bytes.data(), 10, keys.data(), got);
    EXPECT_TRUE(std::equal(got, got + 8, want)) << with->name;
  }
}

TEST(Hash, EverySingleBitMatters) {
  auto bytes = pattern(3000);
  std::set<std::uint64_t> seen = {hash_bytes(bytes.data(), bytes.size())};
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] = static_cast<unsigned char>(bytes[bit / 8] ^ (1 << bit % 8));
    seen.insert(hash_bytes(bytes.data(), bytes.size()));
    bytes[bit / 8] = static_cast<unsigned char>(bytes[bit / 8] ^ (1 << bit % 8));
  }
  EXPECT_EQ(seen.size(), 8 * bytes.size() + 1);
}

TEST(Hash, AFlippedBitChangesHalfOfTheHash) {
  const auto bytes = pattern(2100);
  const std::uint64_t base = hash_bytes(bytes.data(), bytes.size());
  double changed = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    auto other = bytes;
    other[i] = static_cast<unsigned char>(other[i] ^ (1 << i % 8));
    changed += __builtin_popcountll(base ^ hash_bytes(other.data(), other.size()));
  }
  EXPECT_NEAR(changed / static_cast<double>(bytes.size()), 32, 1);
}

TEST(Hash, OrderLengthAndSignsMatter) {
  const auto bytes = pattern(4 * kHashBlock);
  const std::uint64_t base = hash_bytes(bytes.data(), bytes.size());
  for (const std::size_t unit :
       {4u, 8u, 16u, 64u, 128u, 1024u, 2048u}) {  // neighbouring pieces change places
    auto other = bytes;
    std::swap_ranges(other.begin(), other.begin() + static_cast<std::ptrdiff_t>(unit),
                     other.begin() + static_cast<std::ptrdiff_t>(unit));
    EXPECT_NE(hash_bytes(other.data(), other.size()), base) << unit;
  }
  std::set<std::uint64_t> lengths;
  const std::vector<unsigned char> zeros(3000);
  for (std::size_t n = 0; n <= zeros.size(); ++n) lengths.insert(hash_bytes(zeros.data(), n));
  EXPECT_EQ(lengths.size(), zeros.size() + 1);
  std::vector<float> x(1000, 1.0F), y(1000, -1.0F);
  EXPECT_NE(hash_bytes(x.data(), 4000), hash_bytes(y.data(), 4000));
  x.assign(1000, 0.0F);
  y.assign(1000, -0.0F);
  EXPECT_NE(hash_bytes(x.data(), 4000), hash_bytes(y.data(), 4000));
}

TEST(Hash, AlignmentDoesNotMatterAndPiecesAddUp) {
  const auto bytes = pattern(5 * kHashBlock + 321);
  const std::uint64_t want = hash_bytes(bytes.data(), bytes.size());
  for (std::size_t shift = 1; shift < 64; shift += 5) {
    std::vector<unsigned char> room(bytes.size() + 64);
    std::copy(bytes.begin(), bytes.end(), room.begin() + static_cast<std::ptrdiff_t>(shift));
    EXPECT_EQ(hash_bytes(room.data() + shift, bytes.size()), want);
  }
  HashState state;
  state.add_blocks(bytes.data(), 2);
  state.add_blocks(bytes.data() + 2 * kHashBlock, 1);
  EXPECT_EQ(state.finish(bytes.data() + 3 * kHashBlock, bytes.size() - 3 * kHashBlock), want);
  for (const std::size_t floats : {0u, 5u, 1300u, 16384u, 40000u, 49152u, 131072u, 300001u}) {
    const std::vector<float> data(floats, 1.5F);
    EXPECT_EQ(scan_and_hash(DType::float32, data.data(), floats).hash,
              hash_contents(data.data(), 4 * floats));
    EXPECT_EQ(scan_and_hash(DType::float32, data.data(), floats).scan.count, floats);
  }
}

}  // namespace
}  // namespace nanquest
