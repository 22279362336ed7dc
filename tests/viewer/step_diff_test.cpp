// Two steps compared: what `nanquest diff --json --full` wrote, as page, text and CSV; what is no such file.
#include "viewer/model/step_diff.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/viewer/story.h"
#include "viewer/panels/registry.h"

namespace nanquest::viewer {
namespace {

/// A net of tests/diff/formats.py with another epsilon in its LayerNorm, as replay compared it.
constexpr const char* kDiff = NANQUEST_GOLDEN_VERDICTS "/../diff-1.json";

/// Without the line breaks and indents of a text for terminals.
std::string in_one_line(const std::string& text) {
  std::istringstream words(text);
  std::string out, word;
  while (words >> word) out += (out.empty() ? "" : " ") + word;
  return out;
}

class StepDiffs : public testing::Story {
 protected:
  std::string file(const std::string& text) const {
    const std::string path = temp_.path() + "/diff.json";
    std::ofstream(path) << text;
    return path;
  }
};

TEST_F(StepDiffs, IsShownAsReplayWroteIt) {
  const Result<StepDiff> diff = read_step_diff(kDiff);
  ASSERT_TRUE(diff) << diff.error().text();
  EXPECT_EQ(diff->headline(), "A and B differ beyond rounding");
  ASSERT_FALSE(diff->findings.empty());
  const StepDiff::Finding& found = diff->findings.front();
  EXPECT_EQ(found.kind, "argument");
  EXPECT_EQ(found.name, "eps");
  EXPECT_EQ(found.in_b, "0.001");
  const std::size_t first = diff->first_beyond();
  ASSERT_LT(first, diff->operations.size());
  EXPECT_EQ(diff->operations[first].a, found.op_a) << "one answer in both lists";
  EXPECT_EQ(diff->operations[first].state(), OpState::beyond);
  EXPECT_NEAR(diff->operations[first].distance.found, found.distance.found, 1e-9);
  for (std::size_t i = 0; i < first; ++i) EXPECT_NE(diff->operations[i].state(), OpState::beyond);
}

TEST_F(StepDiffs, TextAndCsvHoldTheAnswerAndEachOperation) {
  Session session = open(kDiff);
  ASSERT_NE(session.diff(), nullptr);
  EXPECT_TRUE(session.is_nothing());
  const std::string text = panel_text(session, Panel::runs);
  for (const StepDiff::Line& line : session.diff()->lines)
    EXPECT_TRUE(says(in_one_line(text), line.text)) << text;
  EXPECT_TRUE(says(text, "the first beyond rounding")) << text;
  const std::string csv = *panel_csv(session, Panel::runs);
  EXPECT_EQ(std::ranges::count(csv, '\n'), 1 + std::ssize(session.diff()->findings) +
                                               std::ssize(session.diff()->ends) +
                                               std::ssize(session.diff()->operations));
  EXPECT_TRUE(says(csv, "\ndifference,argument,")) << csv.substr(0, 400);
  for (const Panel panel : {Panel::verdict, Panel::trace, Panel::tensor})
    EXPECT_TRUE(says(panel_text(session, panel), "A and B differ beyond rounding"));
  testing::write_run(dir());
  EXPECT_FALSE(open(dir()).compare_with({kDiff})) << "it is no run";
}

TEST_F(StepDiffs, StatesOfOperations) {
  const std::string path = file(
      R"({"format": "nanquest.diff", "version": 1, "same_program": true, "alike": false, "later": [], "operations": [)"
      R"({"a": 0, "b": 0, "op": "aten::mm", "module": "", "phase": "forward", "distance": 0, "rounding": 1e-7, "beyond": false},)"
      R"({"a": 1, "b": 1, "distance": 1e-7, "rounding": 1e-7, "beyond": false}, {"a": 2, "b": null}, {"a": null, "b": 2},)"
      R"({"a": 3, "b": 3}, {"a": 4, "b": 4, "distance": null, "rounding": 0, "beyond": true},)"
      R"({"a": 5, "b": 5, "distance": 0.5, "rounding": 0, "beyond": true}]})");
  const Result<StepDiff> diff = read_step_diff(path);
  ASSERT_TRUE(diff) << diff.error().text();
  std::vector<OpState> states;
  for (const StepDiff::Operation& op : diff->operations) states.push_back(op.state());
  using enum OpState;
  EXPECT_EQ(states, (std::vector{equal, rounding, only_a, only_b, not_compared, beyond, beyond}))
      << "a distance that is not finite is null in the file, and beyond all the same";
  EXPECT_EQ(diff->first_beyond(), 5u);
}

TEST_F(StepDiffs, WithoutOperationsItSaysHowToGetThem) {
  Session session =
      open(file(R"({"format": "nanquest.diff", "version": 1, "alike": true, "same_program": true,)"
                R"( "lines": [{"head": "ALIKE", "text": "equal within rounding"}]})"));
  const std::string text = panel_text(session, Panel::runs);
  EXPECT_TRUE(says(text, "A and B are equal within rounding")) << text;
  EXPECT_TRUE(says(text, "write it with --json --full")) << text;
}

TEST_F(StepDiffs, WhatCanNotBeReadIsSaid) {
  for (const char* text : {R"({"format": "nanquest.diff", "version": 2})", R"({"format": "nanquest.diff"})",
                           R"({"format": "nanquest.diff", "version": 1, "findings": [3]})",
                           R"({"format": "nanquest.diff", "version": 1, )"}) {
    const Result<Session> none = Session::open(file(text));
    ASSERT_FALSE(none) << text;
    EXPECT_TRUE(says(none.error().text(), "comparison: ")) << none.error().text();
  }
  EXPECT_FALSE(is_step_diff(file("{\"format\": \"nanquest.verdict\"}")));
  EXPECT_FALSE(is_step_diff(temp_.path()));
}

}  // namespace
}  // namespace nanquest::viewer
