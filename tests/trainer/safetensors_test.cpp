// Weights on disk: other programs can read and write them; files are complete or absent.
#include "trainer/checkpoint/safetensors.h"
#include "tests/trainer/helpers.h"
#include "tests/trainer/sample_tensors.h"

namespace nanquest::trainer {
namespace {

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return false;
  const at::Tensor x = a.contiguous(), y = b.contiguous();
  return std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
}

TEST(Safetensors, ComesBackBitForBit) {
  const test::Folder folder;
  ASSERT_TRUE(write_safetensors(folder / "a.safetensors", test::sample_tensors(), {{"step", "7"}}));
  auto file = read_safetensors(folder / "a.safetensors");
  ASSERT_TRUE(file) << file.error().text();
  for (const auto& [name, t] : test::sample_tensors()) {
    ASSERT_TRUE(file->find(name).defined()) << name;
    EXPECT_TRUE(same_bits(file->find(name), t)) << name;
  }
  EXPECT_EQ(file->tensors.size(), test::sample_tensors().size());
  EXPECT_EQ(file->metadata.at("step"), "7");
  EXPECT_EQ(file->metadata.at("format"), "pt");
}

TEST(Safetensors, PythonReadsOursAndWeReadPythons) {
  const test::Folder folder;
  ASSERT_TRUE(write_safetensors(folder / "ours.safetensors", test::sample_tensors(), {}));
  test::write_file(
      folder / "round.py",
      "import sys, torch\n"
      "from safetensors.torch import load_file, save_file\n"
      "t = load_file(sys.argv[1])\n"
      "assert len(t) == 13, len(t)\n"
      "assert t['i64'].tolist() == [0, 1, 2, 3, 4] and t['bool'].tolist() == [True, False, True]\n"
      "assert t['scalar'].shape == () and float(t['scalar']) == 2.5 and t['empty'].shape == (0, 4)\n"
      "assert torch.isnan(t['non.finite'][0]) and t['f16'].dtype == torch.float16\n"
      "save_file(t, sys.argv[2], metadata={'by': 'python'})\n");
  const auto python =
      test::run(std::string(NANQUEST_TEST_PYTHON) + " '" + (folder / "round.py") + "' '" +
                    (folder / "ours.safetensors") + "' '" + (folder / "theirs.safetensors") + "'",
                folder);
  ASSERT_EQ(python.code, 0) << python.err;
  auto file = read_safetensors(folder / "theirs.safetensors");
  ASSERT_TRUE(file) << file.error().text();
  EXPECT_EQ(file->metadata.at("by"), "python");
  for (const auto& [name, t] : test::sample_tensors()) EXPECT_TRUE(same_bits(file->find(name), t)) << name;
}

TEST(Safetensors, AFailureLeavesTheOldFileAndNothingElse) {
  const test::Folder folder;
  const std::string path = folder / "f.safetensors";
  test::write_file(path, "old");
  EXPECT_EQ(write_safetensors(path, {{"odd", at::zeros({2}, at::kComplexDouble)}}, {}).error().code,
            ErrorCode::unsupported);
  EXPECT_EQ(write_safetensors(path + "/below", test::sample_tensors(), {}).error().code, ErrorCode::io);
  EXPECT_EQ(test::read_file(path), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

}  // namespace
}  // namespace nanquest::trainer
