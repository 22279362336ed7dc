// Tokens that other programs wrote, as rows: nanoGPT's and llm.c's .bin, shards written by hand byte for
// byte, and damage to each.
#include <ATen/ATen.h>

#include <cstring>
#include <set>

#include "tests/trainer/helpers.h"
#include "trainer/data/bin_data.h"
#include "trainer/data/crc32.h"
#include "trainer/data/open_tokens.h"
#include "trainer/data/order.h"
#include "trainer/data/prepared_data.h"

namespace nanquest::trainer {
namespace {

using test::Folder;
using test::write_file;
using Tokens = std::vector<std::int64_t>;

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

Tokens row(const at::Tensor& t, std::int64_t n) {
  const at::Tensor r = t[n].contiguous();
  return {r.const_data_ptr<std::int64_t>(), r.const_data_ptr<std::int64_t>() + r.numel()};
}

std::vector<std::uint16_t> counting(std::size_t n) {
  std::vector<std::uint16_t> tokens;
  for (std::size_t i = 0; i < n; ++i) tokens.push_back(static_cast<std::uint16_t>(i));
  return tokens;
}

std::string llmc(std::int32_t magic, std::int32_t version, std::int32_t tokens) {
  std::vector<std::int32_t> head(256, 0);
  head[0] = magic, head[1] = version, head[2] = tokens;
  return bytes_of(head);
}

TEST(Crc32, IsZlibs) {
  const auto of = [](const std::string& s) { return crc32(std::as_bytes(std::span(s.data(), s.size()))); };
  EXPECT_EQ(of(""), 0u);
  EXPECT_EQ(of("123456789"), 0xcbf43926u);  // the check value of its catalogues
  EXPECT_EQ(of("The quick brown fox jumps over the lazy dog"), 0x414fa339u);
}

TEST(Order, GroupsStayTogetherAndNothingIsLost) {
  const std::uint64_t count = 103, group = 8;
  for (const std::uint64_t epoch : {0u, 1u}) {
    std::set<std::uint64_t> seen;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t at = shuffled_in_groups(i, count, group, 42, epoch);
      seen.insert(at);
      const std::uint64_t first = shuffled_in_groups(i / group * group, count, group, 42, epoch);
      if (i < count / group * group)
        EXPECT_EQ(at / group, first / group);
      else
        EXPECT_GE(at, count / group * group);
    }
    EXPECT_EQ(seen.size(), count);
    EXPECT_EQ(*seen.rbegin(), count - 1);
  }
  EXPECT_NE(shuffled_in_groups(0, count, group, 42, 0), shuffled_in_groups(0, count, group, 42, 1));
}

TEST(Bin, NanoGptsTokensAreCutIntoWindows) {
  const Folder folder;
  write_file(folder / "d/train.bin", bytes_of(counting(1000)));
  write_file(folder / "d/val.bin", bytes_of(counting(35)));
  const auto data = open_tokens(folder / "d", {.context = 16, .seed = 1});
  ASSERT_TRUE(data) << data.error().text();
  EXPECT_EQ((*data)->train_rows(), 999 / 16) << "val.bin is what is held out";
  EXPECT_EQ((*data)->eval_rows(), 2);
  EXPECT_EQ((*data)->vocabulary(), 1000);
  const TokenRows rows = (*data)->train_batch(0, 62);
  std::set<std::int64_t> begins;
  for (std::int64_t i = 0; i < 62; ++i) {
    const Tokens tokens = row(rows.tokens, i), targets = row(rows.targets, i);
    begins.insert(tokens[0]);
    for (std::size_t n = 0; n < 16; ++n) {
      EXPECT_EQ(tokens[n], tokens[0] + static_cast<std::int64_t>(n));
      EXPECT_EQ(targets[n], tokens[n] + 1);
    }
    EXPECT_EQ(rows.ids[static_cast<std::size_t>(i)],
              (folder / "d/train.bin") + "@" + std::to_string(tokens[0]));
  }
  EXPECT_EQ(begins.size(), 62u) << "each window once in a pass";
  EXPECT_EQ(row((*data)->eval_batch(1, 5).tokens, 0)[0], 16);
}

TEST(Bin, LlmcsTokensOfBothWidths) {
  const Folder folder;
  write_file(folder / "a_train.bin", llmc(20240520, 1, 40) + bytes_of(counting(40)));
  write_file(folder / "b_train.bin",
             llmc(20240801, 7, 20) + bytes_of(std::vector<std::uint32_t>(20, 128255)));
  const auto data = BinData::open(folder.path(), {.context = 16, .eval_every = 0});
  ASSERT_TRUE(data) << data.error().text();
  EXPECT_EQ((*data)->train_rows(), 3);
  EXPECT_EQ((*data)->vocabulary(), 128256);
  const TokenRows rows = (*data)->train_batch(0, 3);
  std::multiset<std::int64_t> first;
  for (std::int64_t i = 0; i < 3; ++i) first.insert(row(rows.tokens, i)[0]);
  EXPECT_EQ(first, (std::multiset<std::int64_t>{0, 16, 128255}));
}

TEST(Bin, WhatIsWrongIsNamed) {
  const Folder folder;
  const auto refused = [&](const std::string& content, const std::string& what) {
    write_file(folder / "x.bin", content);
    const auto data = open_tokens(folder / "x.bin", {.context = 16});
    ASSERT_FALSE(data);
    EXPECT_EQ(data.error().code, ErrorCode::bad_file);
    EXPECT_NE(data.error().message.find(what), std::string::npos) << data.error().text();
    EXPECT_NE(data.error().message.find("x.bin"), std::string::npos);
  };
  refused("", "the file is empty");
  refused("abc", "odd number of bytes");
  refused("abcd", "no window of 17 tokens");
  refused(llmc(20240520, 1, 41) + bytes_of(counting(40)), "speaks of 41 tokens, it holds 40");
  refused(llmc(20240520, 1, -1) + bytes_of(counting(40)), "speaks of -1 tokens");
  refused(llmc(20240520, 2, 40) + bytes_of(counting(40)), "version 2");
  refused(llmc(20240522, 1, 40) + bytes_of(counting(40)), "HellaSwag");
}

TEST(Bin, FingerprintKnowsOtherTokensAndOtherLengths) {
  const Folder folder;
  std::vector<std::uint16_t> tokens = counting(60000);
  const auto print = [&] {
    write_file(folder / "x.bin", bytes_of(tokens));
    return (*BinData::open(folder / "x.bin", {.context = 16}))->fingerprint();
  };
  const std::string before = print();
  EXPECT_EQ(before, print());
  tokens[59999] = 1;
  const std::string other = print();
  EXPECT_NE(before, other);
  tokens.push_back(1);
  EXPECT_NE(other, print());
}

/// A shard according to docs/data.md, and its manifest.
class Prepared : public testing::Test {
 protected:
  struct Shard {
    std::vector<std::uint16_t> tokens = {10, 11, 12, 13, 20, 21, 22, 30, 31, 32, 33, 34};
    std::vector<std::uint8_t> learned = {0, 0, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1};
    std::vector<std::uint64_t> starts = {0, 4, 7, 12}, rows = {0, 2, 3};
    std::vector<std::uint32_t> lines = {3, 5, 9};
  };

  static std::string padded(std::string s) { return s.append((8 - s.size() % 8) % 8, '\0'); }
  static std::string shard_bytes(const Shard& s) {
    std::string head = "nqtokens";
    head += bytes_of(std::vector<std::uint32_t>{1, 2});
    head += bytes_of(std::vector<std::uint64_t>{s.tokens.size(), s.lines.size(), s.rows.size() - 1, 0, 0, 0});
    return head + padded(bytes_of(s.tokens)) + padded(bytes_of(s.learned)) + bytes_of(s.starts) +
           bytes_of(s.rows) + padded(bytes_of(s.lines));
  }
  static std::uint32_t sum(const std::string& s) {
    return crc32(std::as_bytes(std::span(s.data(), s.size())));
  }

  void write(const std::string& shard, const std::string& name = "shard-00000.bin", int groups = 0) {
    write_file(folder / "p/shard-00000.bin", shard);
    write_file(
        folder / "p/manifest.json",
        R"({"format": "nanquest.prepared", "version": 1, "files": [{"path": "x.jsonl"}],
                   "settings": {"packing": true, "length_groups": )" +
            std::to_string(groups) +
            R"(}, "tokenizer": {"size": 40, "eos": 1, "pad": 2, "files": {"tokenizer.json": {"bytes": 5, "crc32": 7}}},
                   "longest": 7, "largest": 34, "shards": [{"name": ")" +
            name + R"(", "file": 0, "tokens": 12, "samples": 3, "rows": 2, "bytes": )" +
            std::to_string(shard.size()) + ", \"crc32\": " + std::to_string(sum(shard)) + "}]}");
  }
  Result<std::unique_ptr<PreparedData>> open() const {
    return PreparedData::open(folder / "p", {.seed = 1, .eval_every = 0});
  }
  void refused(const std::string& what) const {
    const auto data = open();
    ASSERT_FALSE(data) << what;
    EXPECT_EQ(data.error().code, ErrorCode::bad_file);
    EXPECT_NE(data.error().message.find(what), std::string::npos) << data.error().text();
  }

  const Folder folder;
};

TEST_F(Prepared, MasksPositionsAndNumbersAreRightAtBorders) {
  write(shard_bytes({}));
  const auto data = open();
  ASSERT_TRUE(data) << data.error().text();
  EXPECT_TRUE((*data)->packed());
  EXPECT_EQ((*data)->longest(), 6);
  EXPECT_EQ((*data)->vocabulary(), 40);
  TokenRows rows = (*data)->train_batch(0, 2);
  const std::int64_t packed = rows.ids[0] == "x.jsonl:3+5" ? 0 : 1, single = 1 - packed;
  EXPECT_EQ(rows.ids[static_cast<std::size_t>(packed)], "x.jsonl:3+5");
  EXPECT_EQ(rows.ids[static_cast<std::size_t>(single)], "x.jsonl:9");
  EXPECT_EQ(row(rows.tokens, packed), (Tokens{10, 11, 12, 13, 20, 21}));
  // 20 begins a text: it follows no token, although it is marked as learned.
  EXPECT_EQ(row(rows.targets, packed), (Tokens{-100, 12, 13, -100, 21, 22}));
  EXPECT_EQ(row(rows.positions, packed), (Tokens{0, 1, 2, 3, 0, 1}));
  EXPECT_EQ(row(rows.parts, packed), (Tokens{0, 0, 0, 0, 1, 1}));
  EXPECT_EQ(row(rows.tokens, single), (Tokens{30, 31, 32, 33, 2, 2}));
  EXPECT_EQ(row(rows.targets, single), (Tokens{-100, -100, -100, 34, -100, -100}));
  EXPECT_EQ(row(rows.parts, single), (Tokens{0, 0, 0, 0, 1, 1})) << "padding is a text of its own";
}

TEST_F(Prepared, EveryDamageIsNamed) {
  const std::string good = shard_bytes({});
  for (std::size_t at = 0; at < good.size(); ++at) {  // the manifest describes what was written
    write(good);
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    write_file(folder / "p/shard-00000.bin", bad);
    const auto data = open();
    ASSERT_FALSE(data) << "byte " << at;
    EXPECT_EQ(data.error().code, ErrorCode::bad_file);
  }
  write(good);
  write_file(folder / "p/shard-00000.bin", good.substr(0, good.size() - 8));
  refused("truncated");
  std::filesystem::remove(folder / "p/shard-00000.bin");
  refused("No such file");
  write(good, "../p/shard-00000.bin");
  refused("a shard's name is");
  Shard backwards;
  backwards.starts = {0, 7, 4, 12};
  write(shard_bytes(backwards));
  refused("not in order");
  Shard empty;
  empty.rows = {0, 0, 3};
  write(shard_bytes(empty));
  refused("not in order");
  std::string many = good;  // a number of samples whose size overflows
  const std::uint64_t huge = ~std::uint64_t{0};
  for (const std::size_t at : {16u, 24u, 32u}) {
    many = good;
    std::memcpy(many.data() + at, &huge, 8);
    write(many);
    refused("truncated");
  }
  write_file(folder / "p/manifest.json", R"({"format": "nanquest.prepared", "version": 2})");
  refused("of version 2");
  write_file(folder / "p/manifest.json", "{");
  refused("not JSON");
  std::filesystem::remove(folder / "p/manifest.json");
  write_file(folder / "p/shard-00000.bin", good);
  const auto unfinished = open_tokens(folder / "p", {});
  ASSERT_FALSE(unfinished);
  EXPECT_NE(unfinished.error().text().find("let nanquest prepare finish"), std::string::npos);
}

}  // namespace
}  // namespace nanquest::trainer
