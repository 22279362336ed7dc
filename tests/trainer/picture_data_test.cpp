// Pictures of nanquest prepare: a shard written by hand according to docs/data.md, and damage to it.
#include <ATen/ATen.h>

#include <cstring>

#include "tests/trainer/helpers.h"
#include "trainer/data/picture_file.h"

namespace nanquest::trainer {
namespace {

using test::Folder;
using test::write_file;

/// Two pictures of two channels, one pixel high and three wide.
struct PictureShard {
  std::uint32_t version = 1, bytes = 1, channels = 2, height = 1, width = 3;
  std::uint64_t samples = 2;
  std::vector<std::uint8_t> labels{1, 0};
  std::vector<std::uint64_t> ends{0, 2, 5};

  std::string text() const {
    std::string all = "nqimages";
    const auto put = [&all](const void* from, std::size_t size) {
      all.append(static_cast<const char*>(from), size);
    };
    const auto fill = [&all] { all.resize((all.size() + 7) / 8 * 8); };
    for (const std::uint32_t n : {version, bytes}) put(&n, 4);
    put(&samples, 8);
    for (const std::uint32_t n : {channels, height, width}) put(&n, 4);
    all.resize(64);
    const std::uint32_t lines[] = {7, 9};
    put(lines, 8);
    put(labels.data(), labels.size());
    fill();
    put(ends.data(), ends.size() * 8);
    all +=
        "ab"
        "cde";
    fill();
    std::vector<float> table(512);
    for (int i = 0; i < 512; ++i) table[static_cast<std::size_t>(i)] = static_cast<float>(i) / 4;
    put(table.data(), table.size() * 4);
    for (const char code : {0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 127}) all += code;
    fill();
    return all;
  }
};

TEST(PictureFile, IsReadAsItIsDescribed) {
  Folder folder;
  write_file(folder / "p.bin", PictureShard().text());
  const auto file = PictureFile::open(folder / "p.bin");
  ASSERT_TRUE(file) << file.error().text();
  EXPECT_EQ(file->samples(), 2u);
  EXPECT_EQ(file->line(1), 9u);
  EXPECT_EQ(std::pair(file->label(0), file->label(1)), std::pair(std::uint8_t{1}, std::uint8_t{0}));
  EXPECT_EQ(file->picture(0), "ab");
  EXPECT_EQ(file->picture(1), "cde");
  std::vector<float> found(6);
  file->read(1, found.data());
  EXPECT_EQ(found,
            (std::vector<float>{2.5, 2.75, 3, (256 + 13) / 4.0F, (256 + 14) / 4.0F, (256 + 127) / 4.0F}));
}

TEST(PictureFile, DamageIsNamed) {
  Folder folder;
  const std::string path = folder / "p.bin";
  const auto refused = [&](const std::string& text) -> std::string {
    write_file(path, text);
    const auto file = PictureFile::open(path);
    return file ? "" : file.error().text();
  };
  const auto shard = [&](auto change) {
    PictureShard s;
    change(s);
    return refused(s.text());
  };
  const std::string good = PictureShard().text();
  EXPECT_NE(refused("x" + good).find("not a shard of prepared pictures"), std::string::npos);
  EXPECT_NE(refused(good + "12345678").find("longer than it says"), std::string::npos);
  for (std::size_t end = 8; end < good.size(); end += 8) EXPECT_NE(refused(good.substr(0, end)), "") << end;
  EXPECT_NE(shard([](PictureShard& s) { s.version = 2; }).find("of version 2"), std::string::npos);
  EXPECT_NE(shard([](PictureShard& s) { s.bytes = 2; }).find("pixels of 2 bytes"), std::string::npos);
  EXPECT_NE(shard([](PictureShard& s) { s.labels[1] = 2; }).find("the label of line 9 is 2, neither 0 nor 1"),
            std::string::npos);
  EXPECT_NE(shard([](PictureShard& s) { s.ends[1] = 6; }).find("not in order"), std::string::npos);
  EXPECT_NE(shard([](PictureShard& s) { s.ends[2] = std::uint64_t{1} << 60; }), "");
  EXPECT_NE(shard([](PictureShard& s) { s.width = 0; }).find("impossible size"), std::string::npos);
  // Products that overflow to small numbers.
  EXPECT_NE(shard([](PictureShard& s) { s.samples = std::uint64_t{1} << 63; }), "");
  EXPECT_NE(shard([](PictureShard& s) { s.height = s.width = 1 << 16, s.samples = std::uint64_t{1} << 31; }),
            "");
}

}  // namespace
}  // namespace nanquest::trainer
