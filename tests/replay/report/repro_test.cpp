// repro of every sample of a cause: the op alone shows its recorded results, in Python and in C++, or it is
// refused with the reason why no op can show it.
#include <nlohmann/json.hpp>

#include "tests/replay/report/repro_set.h"

namespace nanquest {
namespace {

namespace fs = std::filesystem;
using testing::Counts;
using testing::counts_of;
using testing::lines;
using testing::Output;

/// Samples that no op can show, and what the refusal must say. A new sample that is refused has to be entered
/// here.
const std::map<std::string, std::vector<std::string>> kNoOp = {
    {"bad_data", {"no op made the bad values", "features"}},
    {"bad_state", {"no op made the bad values", "norm.running_var"}},
    {"hardware", {"gives finite values here", "the machine"}},
    {"innocent_logspace", {"nothing harmful was found"}},
    {"innocent_mask", {"nothing harmful was found"}},
    {"loss_scale", {"no op made the bad values", "scale"}},
    {"race", {"no op made the bad values", "changed while the step was reading it"}},
    {"uninitialized", {"no op made the bad values", "nobody had written"}},
};

/// Samples whose op is finite in a wider format; all others stay as bad as they are.
const std::set<std::string> kCured = {"exp_overflow", "fp16_overflow", "mask_overflow", "norm_overflow"};

class Samples : public ::testing::Test {
 protected:
  /// Records the sample, makes its repro and, of one that is made, reads what the culprit was recorded to
  /// write.
  void record(const std::string& name) {
    const std::string snapshot = scratch_ / (name + ".h5");
    ASSERT_LE(run_program(std::string(NANQUEST_SAMPLES) + "/" + name + " '" + snapshot + "'", scratch_).code,
              1);
    const Output made = set_.make(name);
    if (made.code != 0) return expect_reason(name, made);
    EXPECT_EQ(kNoOp.count(name), 0u) << name << " was made, but should be refused";
    const SnapshotDoc doc = testing::doc_of(snapshot);
    const std::int32_t op = op_in(made.err);
    // Where replay blames another op than the recorder did, the verdict must do so too.
    if (op != doc.culprit.op) {
      const Output verdict = run_program(
          std::string(NANQUEST_REPLAY) + " -q --json --no-files --no-fixes '" + snapshot + "'", scratch_);
      EXPECT_EQ(nlohmann::json::parse(verdict.out)["culprit"]["index"], op) << name;
    }
    recorded_[name] = testing::counts_in_file(doc, op);
    EXPECT_NE(recorded_[name], Counts{}) << name << ": the file holds nothing bad of op " << op;
  }

  /// The op that the message names: "…, op 12 of step 77, …".
  static std::int32_t op_in(const std::string& message) {
    std::smatch match;
    const bool named = std::regex_search(message, match, std::regex("op ([0-9]+) of step"));
    EXPECT_TRUE(named) << message;
    return named ? std::stoi(match[1]) : kNone;
  }

  void expect_reason(const std::string& name, const Output& made) {
    EXPECT_EQ(made.code, 2) << name << ": " << made.err;
    EXPECT_TRUE(made.out.empty()) << made.out;
    EXPECT_FALSE(fs::exists(scratch_ / (name + ".repro.py"))) << name;
    ASSERT_EQ(kNoOp.count(name), 1u) << name << " has neither a repro nor a stated reason: " << made.err;
    for (const std::string& part : kNoOp.at(name))
      EXPECT_NE(made.err.find(part), std::string::npos) << name << ": " << made.err;
    refused_.insert(name);
  }

  void expect_shown(const std::string& name, const Output& o, const std::vector<std::string>& wider) {
    testing::expect_recorded(o, recorded_[name], name);
    for (const std::string& title : wider) {
      const auto wide = lines(o.out, "in " + title);
      if (wide.empty()) continue;
      EXPECT_EQ(counts_of(wide) == Counts{}, kCured.count(name) == 1) << name << "\n" << o.out;
    }
    EXPECT_FALSE(lines(o.out, "in " + wider.back()).empty()) << name << "\n" << o.out;
  }

  testing::Scratch scratch_{"repro_samples"};
  testing::ReproSet set_{scratch_};
  std::map<std::string, Counts> recorded_;
  std::set<std::string> refused_;
};

TEST_F(Samples, ShowInBothLanguagesWhatWasRecordedOrSayWhyNoOpCan) {
  for (const auto& file : fs::directory_iterator(fs::path(NANQUEST_SOURCE) / "samples/causes"))
    if (file.path().extension() == ".cpp") record(file.path().stem().string());
  EXPECT_EQ(refused_.size(), kNoOp.size()) << "a reason is stated for a sample that is not there";
  ASSERT_GE(set_.names().size(), 18u);
  set_.compile();
  if (HasFatalFailure()) return;
  for (const std::string& name : set_.names()) expect_shown(name, set_.cpp(name), {"Float", "Double"});
#ifdef NANQUEST_PYTHON
  for (const auto& [name, output] : set_.python()) {
    expect_shown(name, output, {"float32", "float64"});
    // Of an op of backward the forward op is there too, and sends something bad back.
    const bool backward = output.out.find("in the derivative of") != std::string::npos;
    const auto sent = lines(output.out, "through autograd");
    EXPECT_EQ(!sent.empty(), backward) << output.out;
    EXPECT_EQ(counts_of(sent) != Counts{}, backward) << output.out;
  }
#endif
}

}  // namespace
}  // namespace nanquest
