// What holds for every file of replay/cause/causes, for the verdicts on all samples, and for the innocent
// ones.
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/version.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "replay/verdict/json.h"
#include "tests/replay/diagnose/sample.h"

namespace nanquest {
namespace {

namespace fs = std::filesystem;

TEST(AllCauses, AreOneFileEachNamedLikeTheirLabels) {
  std::set<std::string> listed;
  for (const auto& [file, cause] : all_causes()) {
    std::string name(word(cause->label));
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    EXPECT_EQ(name, file);
    EXPECT_TRUE(listed.insert(name).second) << name << " is there twice";
    EXPECT_NE(cause->examine, nullptr) << name;
  }
  std::set<std::string> files;
  for (const auto& entry : fs::directory_iterator(fs::path(NANQUEST_SOURCE) / "replay/cause/causes"))
    files.insert(entry.path().stem().string());
  EXPECT_EQ(listed, files);
}

TEST(AllCauses, ThatAreProvedHaveASampleAndATest) {
  for (const auto& [file, cause] : all_causes()) {
    const std::string name(file);
    EXPECT_TRUE(fs::exists(fs::path(NANQUEST_SOURCE) / "samples/causes" / (name + ".cpp"))) << name;
    EXPECT_TRUE(fs::exists(fs::path(NANQUEST_SOURCE) / "tests/replay/diagnose/causes" / (name + "_test.cpp")))
        << name;
  }
}

/// True if some overload of aten::`op`, also in place or over lists, has an argument of this name.
bool some_schema_has(const std::string& op, std::string_view argument) {
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (name.name != "aten::" + op) continue;
    const auto handle = c10::Dispatcher::singleton().findOp(name);
    if (argument.empty() && handle) return true;
    for (const c10::Argument& a : handle ? handle->schema().arguments() : std::vector<c10::Argument>{})
      if (a.name() == argument) return true;
  }
  return false;
}

TEST(AllCauses, SpeakOfOpsAndArgumentsThatATenHas) {
  for (const auto& [file, cause] : all_causes())
    for (const Subject& s : cause->ops)
      EXPECT_TRUE(some_schema_has(std::string(s.op), s.argument))
          << file << ": " << s.op << ", " << s.argument;
}

class Innocents : public ::testing::TestWithParam<const char*> {};

TEST_P(Innocents, AreNotAccused) {
  const Verdict v = testing::sample_verdict(GetParam(), 0);
  EXPECT_FALSE(v.found) << word(v.cause) << ": " << v.explanation;
  EXPECT_TRUE(v.reproduction.bit_exact);
}

INSTANTIATE_TEST_SUITE_P(Steps, Innocents, ::testing::Values("innocent_mask", "innocent_logspace"),
                         [](const auto& one) { return std::string(one.param); });

/// The viewer is tested with files that replay wrote (tests/golden/verdicts): they must be what it writes
/// today.
class GoldenVerdicts : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenVerdicts, AreWhatReplaySaysToday) {
  if (std::string(TORCH_VERSION).rfind("2.15.", 0) != 0)
    GTEST_SKIP() << "the golden files are of LibTorch 2.15, other versions split a step into other ops";
  const std::string path = std::string(NANQUEST_SOURCE) + "/tests/golden/verdicts/" + GetParam() + ".json";
  const auto golden = read_verdict(path);
  ASSERT_TRUE(golden.ok()) << golden.error().text();
  const Verdict now = testing::sample_verdict(GetParam(), golden->found ? 1 : 0);
  for (const Difference& d : differences(*golden, now))
    if (d.field.rfind("/culprit/stack", 0) != 0)  // addresses of this build
      ADD_FAILURE() << d.field << ": " << d.first << " became " << d.second
                    << ". If that is meant: " << NANQUEST_SAMPLES << "/" << GetParam() << " " << GetParam()
                    << ".h5; nanquest-replay -q --json " << GetParam() << ".h5 > " << path;
}

std::vector<std::string> golden_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(fs::path(NANQUEST_SOURCE) / "tests/golden/verdicts"))
    names.push_back(entry.path().stem().string());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Samples, GoldenVerdicts, ::testing::ValuesIn(golden_names()),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace nanquest
