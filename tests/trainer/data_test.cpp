// From text to windows: order, split, ids, and every kind of bad input.
#include <ATen/ATen.h>

#include <set>

#include "tests/trainer/helpers.h"
#include "trainer/data/order.h"
#include "trainer/data/text_data.h"
#include "trainer/data/utf8.h"

namespace nanquest::trainer {
namespace {

TEST(Order, IsAPermutationForEverySizeAndEpoch) {
  for (const std::uint64_t count : {1u, 2u, 3u, 17u, 64u, 1000u, 1025u})
    for (const std::uint64_t epoch : {0u, 1u, 99u}) {
      std::set<std::uint64_t> seen;
      for (std::uint64_t i = 0; i < count; ++i) seen.insert(shuffled(i, count, 42, epoch));
      EXPECT_EQ(seen.size(), count);
      EXPECT_LT(*seen.rbegin(), count);
    }
}

TEST(Order, DependsOnSeedAndEpochAlone) {
  const auto take = [](std::uint64_t seed, std::uint64_t epoch) {
    std::vector<std::uint64_t> order;
    for (std::uint64_t i = 0; i < 100; ++i) order.push_back(shuffled(i, 100, seed, epoch));
    return order;
  };
  EXPECT_EQ(take(1, 0), take(1, 0));
  EXPECT_NE(take(1, 0), take(2, 0));
  EXPECT_NE(take(1, 0), take(1, 1));
}

TEST(Order, LooksRandom) {
  // The mean displacement of a random permutation of n is n/3; a shift or a reversal would differ much in
  // some half.
  const std::uint64_t n = 3000;
  double sum = 0;
  for (std::uint64_t i = 0; i < n; ++i)
    sum += std::abs(static_cast<double>(shuffled(i, n, 7, 0)) - static_cast<double>(i));
  EXPECT_NEAR(sum / static_cast<double>(n), static_cast<double>(n) / 3, static_cast<double>(n) * 0.03);
}

TEST(Utf8, KnowsTextFromBytes) {
  const auto bad_at = [](const std::string& s) {
    return first_non_text({reinterpret_cast<const std::uint8_t*>(s.data()), s.size()});
  };
  EXPECT_EQ(bad_at("plain\n"), 6u);
  EXPECT_EQ(bad_at("\xc3\xa4\xe2\x82\xac\xf0\x9f\x99\x82"), 9u);
  EXPECT_EQ(bad_at(std::string("a\0b", 3)), 1u);
  EXPECT_EQ(bad_at("ab\xc0\x80"), 2u);        // overlong
  EXPECT_EQ(bad_at("\xed\xa0\x80"), 0u);      // surrogate
  EXPECT_EQ(bad_at("\xf4\x90\x80\x80"), 0u);  // above U+10FFFF
  EXPECT_EQ(bad_at("a\xe2\x82"), 1u);         // cut off
  EXPECT_EQ(bad_at("caf\xe9"), 3u);           // Latin-1
  const std::string s = "x\xe2\x82y";
  EXPECT_EQ(as_text({reinterpret_cast<const std::uint8_t*>(s.data()), s.size()}), "x??y");
}

TEST(Data, WindowsPredictTheNextByteAndKnowWhereTheyAreFrom) {
  const test::Folder folder;
  const std::string text = test::some_text(2000);
  test::write_file(folder / "a.txt", text);
  auto data = TextData::open(folder / "a.txt", {.context = 16, .seed = 3, .eval_every = 10});
  ASSERT_TRUE(data) << data.error().text();
  EXPECT_EQ(data->train_rows() + data->eval_rows(), static_cast<std::int64_t>((text.size() - 1) / 16));
  const TokenRows batch = data->train_batch(0, 5);
  for (std::int64_t row = 0; row < 5; ++row) {
    const std::string& id = batch.ids[static_cast<std::size_t>(row)];
    const auto offset = std::stoul(id.substr(id.find('@') + 1));
    EXPECT_EQ(id.substr(0, id.find('@')), folder / "a.txt");
    for (std::int64_t i = 0; i < 16; ++i) {
      EXPECT_EQ(batch.tokens[row][i].item<int>(), text[offset + static_cast<std::size_t>(i)]);
      EXPECT_EQ(batch.targets[row][i].item<int>(), text[offset + static_cast<std::size_t>(i) + 1]);
    }
    EXPECT_EQ(batch.texts[static_cast<std::size_t>(row)], text.substr(offset, 17));
  }
}

TEST(Data, OneEpochSeesEveryWindowOnceAndNeverAHeldOutOne) {
  const test::Folder folder;
  test::write_file(folder / "d/b.txt", test::some_text(1500));
  test::write_file(folder / "d/sub/a.md", test::some_text(700));
  auto data = TextData::open(folder / "d", {.context = 16, .seed = 3, .eval_every = 7});
  ASSERT_TRUE(data);
  const std::int64_t n = data->train_rows();
  std::set<std::string> first, second, held_out;
  for (std::int64_t i = 0; i < n; ++i) {
    first.insert(data->train_batch(i, 1).ids[0]);
    second.insert(data->train_batch(n + i, 1).ids[0]);
  }
  for (const std::string& id : data->eval_batch(0, 1000).ids) held_out.insert(id);
  EXPECT_EQ(static_cast<std::int64_t>(first.size()), n);
  EXPECT_EQ(first, second);
  EXPECT_EQ(static_cast<std::int64_t>(held_out.size()), data->eval_rows());
  for (const std::string& id : held_out) EXPECT_FALSE(first.contains(id)) << id;
  EXPECT_NE(data->train_batch(0, 8).ids, data->train_batch(n, 8).ids);
  EXPECT_EQ(data->train_batch(5, 3).ids[1], data->train_batch(6, 1).ids[0]);
}

TEST(Data, PassesOverWhatIsNotTextAndCountsIt) {
  const test::Folder folder;
  test::write_file(folder / "good.txt", test::some_text(400));
  test::write_file(folder / "binary.txt", std::string("text\0text", 9));
  test::write_file(folder / "latin.md", "caf\xe9 " + test::some_text(400));
  test::write_file(folder / "short.txt", "abc");
  test::write_file(folder / "empty.txt", "");
  test::write_file(folder / "picture.png", "not read");
  test::write_file(folder / ".git/x.txt", test::some_text(400));
  test::write_file(folder / "build/CMakeCache.txt", test::some_text(400));
  auto data = TextData::open(folder.path(), {.context = 16});
  ASSERT_TRUE(data) << data.error().text();
  EXPECT_EQ(data->files(), 2);  // good.txt, short.txt
  EXPECT_EQ(data->skipped_binary(), 2);
  EXPECT_EQ(data->skipped_short(), 2);
  EXPECT_EQ(data->skipped_other(), 1);
  for (const std::string& id : data->train_batch(0, 20).ids)
    EXPECT_NE(id.find("good.txt@"), std::string::npos);
}

TEST(Data, SaysWhatIsWrong) {
  const test::Folder folder;
  test::write_file(folder / "empty.txt", "");
  test::write_file(folder / "binary.txt", std::string("some\0thing", 10));
  test::write_file(folder / "latin.txt", "caf\xe9" + test::some_text(100));
  test::write_file(folder / "short.txt", "too short");
  test::write_file(folder / "none/picture.png", "x");
  const std::pair<std::string, std::string> cases[] = {
      {"missing.txt", "no such file"},       {"empty.txt", "empty"},     {"binary.txt", "offset 4"},
      {"latin.txt", "byte 233 at offset 3"}, {"short.txt", "too short"}, {"none", "no text files"}};
  for (const auto& [name, words] : cases) {
    auto data = TextData::open(folder / name, {.context = 16});
    ASSERT_FALSE(data) << name;
    EXPECT_EQ(data.error().code, ErrorCode::bad_file);
    EXPECT_NE(data.error().message.find(folder / name), std::string::npos) << data.error().text();
    EXPECT_NE(data.error().message.find(words), std::string::npos) << data.error().text();
    EXPECT_FALSE(data.error().hint.empty());
  }
  EXPECT_FALSE(TextData::open("", {}));
}

TEST(Data, FingerprintChangesWithAnyByte) {
  const test::Folder folder;
  std::string text = test::some_text(400);
  test::write_file(folder / "a.txt", text);
  const auto before = TextData::open(folder / "a.txt", {.context = 16})->fingerprint();
  EXPECT_EQ(before, TextData::open(folder / "a.txt", {.context = 16})->fingerprint());
  text[200] = '!';
  test::write_file(folder / "a.txt", text);
  EXPECT_NE(before, TextData::open(folder / "a.txt", {.context = 16})->fingerprint());
}

}  // namespace
}  // namespace nanquest::trainer
