// A file of weights is not trusted: damage and malice are found and named.
#include <ATen/ATen.h>

#include "tests/trainer/helpers.h"
#include "trainer/checkpoint/safetensors.h"

namespace nanquest::trainer {
namespace {

std::string with_header(const std::string& header, std::size_t data_bytes) {
  std::uint64_t length = header.size();
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return file + header + std::string(data_bytes, 'x');
}

/// The header's entry of a tensor; the whole header as JSON.
std::string tensor(const char* name, const char* dtype, const char* shape, const char* offsets) {
  return std::string("\"") + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape +
         R"(,"data_offsets":)" + offsets + "}";
}

/// A file of one tensor, and of two.
std::string one(const char* dtype, const char* shape, const char* offsets, std::size_t data_bytes) {
  return with_header("{" + tensor("a", dtype, shape, offsets) + "}", data_bytes);
}

std::string two(const std::string& first, const std::string& second, std::size_t data_bytes) {
  return with_header("{" + first + "," + second + "}", data_bytes);
}

TEST(Safetensors, HostileFilesAreRefusedWithTheirName) {
  const test::Folder folder;
  std::string huge(8, '\xff');
  std::string deep = R"({"a":)";
  for (int i = 0; i < 100; ++i) deep += R"({"a":)";
  const std::pair<const char*, std::string> cases[] = {
      {"empty", ""},
      {"seven bytes", "1234567"},
      {"length beyond file", huge + "{}"},
      {"length beyond file by one", with_header("{}", 0).substr(0, 9)},
      {"not json", with_header("{nonsense", 0)},
      {"not an object", with_header("[1]", 0)},
      {"leading space", with_header(" {}", 0)},
      {"no tensor of this data", with_header("{}", 4)},
      {"unknown type", one("Q7", "[1]", "[0,4]", 4)},
      {"type is a number", with_header(R"({"a":{"dtype":7,"shape":[1],"data_offsets":[0,4]}})", 4)},
      {"negative size", one("F32", "[-1]", "[0,4]", 4)},
      {"fractional size", one("F32", "[1.0]", "[0,4]", 4)},
      {"size overflow", one("F32", "[4294967296,4294967296]", "[0,0]", 0)},
      {"size overflow to zero", one("F32", "[4611686018427387904]", "[0,0]", 0)},
      {"size mismatch", one("F32", "[2]", "[0,4]", 4)},
      {"end before begin", one("F32", "[1]", "[4,0]", 4)},
      {"hole at the start", one("F32", "[1]", "[4,8]", 8)},
      {"hole", two(tensor("a", "F32", "[1]", "[0,4]"), tensor("b", "F32", "[1]", "[8,12]"), 12)},
      {"overlap", two(tensor("a", "F32", "[2]", "[0,8]"), tensor("b", "F32", "[2]", "[4,12]"), 12)},
      {"data beyond file", one("F32", "[2]", "[0,8]", 4)},
      {"bytes left over", one("F32", "[1]", "[0,4]", 5)},
      {"name twice", two(tensor("a", "U8", "[1]", "[0,1]"), tensor("a", "U8", "[1]", "[0,1]"), 1)},
      {"extra field", with_header(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":1}})", 1)},
      {"field missing", with_header(R"({"a":{"dtype":"U8","shape":[1]}})", 1)},
      {"nine dimensions", one("U8", "[1,1,1,1,1,1,1,1,1]", "[0,1]", 1)},
      {"metadata not text", with_header(R"({"__metadata__":{"a":1}})", 0)},
      {"nested deeply", with_header(deep, 0)},
      {"bad utf-8", with_header("{\"\xff\xfe\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1)},
  };
  for (const auto& [what, content] : cases) {
    test::write_file(folder / "bad.safetensors", content);
    auto file = read_safetensors(folder / "bad.safetensors");
    ASSERT_FALSE(file) << what;
    EXPECT_EQ(file.error().code, ErrorCode::bad_file) << what;
    EXPECT_TRUE(file.error().message.starts_with(folder / "bad.safetensors")) << file.error().text();
    EXPECT_EQ(file.error().text().find('\n'), std::string::npos);
  }
  EXPECT_FALSE(read_safetensors(folder / "missing.safetensors"));
  test::write_file(folder / "fine.safetensors",
                   with_header(R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}}  )", 3));
  EXPECT_TRUE(read_safetensors(folder / "fine.safetensors"));
  EXPECT_FALSE(read_safetensors(folder / "fine.safetensors", 10));
}

TEST(Safetensors, EveryTruncationAndEveryFlippedBitIsFound) {
  const test::Folder folder;
  at::manual_seed(1);
  ASSERT_TRUE(write_safetensors(folder / "a.safetensors",
                                {{"w", at::randn({5})}, {"b", at::arange(3, at::kByte)}}, {}));
  const std::string whole = test::read_file(folder / "a.safetensors");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    test::write_file(folder / "b.safetensors", whole.substr(0, size));
    EXPECT_FALSE(read_safetensors(folder / "b.safetensors")) << size;
  }
  std::uint64_t header = 0;
  std::memcpy(&header, whole.data(), 8);
  for (std::size_t at = 8 + header; at < whole.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      test::write_file(folder / "b.safetensors", damaged);
      auto file = read_safetensors(folder / "b.safetensors");
      ASSERT_FALSE(file) << at;
      EXPECT_NE(file.error().message.find("checksum"), std::string::npos);
    }
}

// The header, with its metadata, is under a checksum: a changed digit is found.
TEST(Safetensors, AnotherDigitInTheHeaderIsFound) {
  const test::Folder folder;
  const NamedTensors none_and_some{
      {"b", at::zeros({0, 2})}, {"a", at::zeros({3, 0})}, {"w", at::ones({2, 3})}};
  ASSERT_TRUE(write_safetensors(folder / "a.safetensors", none_and_some, {{"step", "123"}}));
  const std::string whole = test::read_file(folder / "a.safetensors");
  EXPECT_TRUE(read_safetensors(folder / "a.safetensors")->whole);
  for (const auto& [right, wrong] : {std::pair("\"123\"", "\"124\""), std::pair("\"step\"", "\"stop\""),
                                     std::pair("[2,3]", "[3,2]"), std::pair("\"w\"", "\"v\"")}) {
    std::string damaged = whole;
    const std::size_t at = damaged.find(right);
    ASSERT_NE(at, std::string::npos) << right;
    damaged.replace(at, std::string(right).size(), wrong);
    test::write_file(folder / "b.safetensors", damaged);
    const auto file = read_safetensors(folder / "b.safetensors");
    ASSERT_FALSE(file) << wrong;
    EXPECT_NE(file.error().message.find("checksum of its header"), std::string::npos) << file.error().text();
  }
}

// Files from before nq64 have a sum that is no longer known: they are read, and it is not part of the
// metadata.
TEST(Safetensors, FilesWithTheOldSumAreRead) {
  const test::Folder folder;
  test::write_file(folder / "old.safetensors",
                   with_header(R"({"__metadata__":{"format":"pt","nanquest.checksum":"0123456789abcdef"},)"
                               R"("a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})",
                               3));
  const auto file = read_safetensors(folder / "old.safetensors");
  ASSERT_TRUE(file) << file.error().text();
  EXPECT_FALSE(file->whole);
  EXPECT_EQ(file->tensors.size(), 1u);
  EXPECT_EQ(file->metadata, (std::map<std::string, std::string>{{"format", "pt"}}));
}

}  // namespace
}  // namespace nanquest::trainer
