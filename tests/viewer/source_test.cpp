// Where in the program it was: the whole stack, and the program's own lines.
#include "replay/verdict/json.h"
#include "viewer/model/source.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/viewer/story.h"
#include "viewer/model/verdict_page.h"
#include "viewer/panels/registry.h"

namespace nanquest::viewer {
namespace {

namespace fs = std::filesystem;

class SourceLines : public testing::OpenStory {
 protected:
  std::string write(const std::string& name, int lines) {
    const std::string path = temp_.path() + "/" + name;
    std::ofstream file(path);
    for (int i = 1; i <= lines; ++i) file << "    line(" << i << ")\n";
    return path;
  }
  static Source read(const std::string& frame) { return read_source(frame, fs::file_time_type::max()); }
  /// The snapshot of step 131 with a verdict whose op was called from there.
  Session blaming(const std::vector<std::string>& stack) {
    Result<Verdict> verdict = read_verdict(verdict_path(snapshot_));
    verdict->culprit.stack = stack;
    std::ofstream(verdict_path(snapshot_)) << to_json(*verdict);
    return open(snapshot_);
  }
};

TEST_F(SourceLines, AreThoseAroundTheFrame) {
  const std::string path = write("train.py", 20);
  const Source source = read(path + ":9 forward");
  EXPECT_EQ(source.path, path);
  EXPECT_EQ(source.line, 9u);
  EXPECT_EQ(source.first, 6u);
  ASSERT_EQ(source.lines.size(), 7u);
  EXPECT_EQ(source.lines[3], "    line(9)");
  EXPECT_EQ(source.why, "");
  EXPECT_EQ(read(path + ":1 f").lines.size(), 4u);
  EXPECT_EQ(read(path + ":20 f").lines.back(), "    line(20)");
}

TEST_F(SourceLines, SayWhyThereAreNone) {
  EXPECT_TRUE(
      says(read("/no/such/train.py:9 forward").why, "/no/such/train.py was not found on this machine"));
  EXPECT_TRUE(says(read(write("short.py", 3) + ":9 f").why, "fewer lines"));
  for (const char* frame :
       {"", "program+0x3c655 main", "<string>", "std::vector<int>::at(int)", "train.py:0 f"}) {
    EXPECT_EQ(read(frame).path, "") << frame;
    EXPECT_EQ(read(frame).why, "") << frame;
  }
}

/// A snapshot is not trusted and may name any file; a report of it may be passed on.
TEST_F(SourceLines, AreOfProgramsAlone) {
  for (const char* name : {"id_rsa", "passwd.txt", "key.pem"}) {
    const Source source = read(write(name, 20) + ":3 f");
    EXPECT_TRUE(source.lines.empty()) << name;
    EXPECT_TRUE(says(source.why, "not shown")) << source.why;
  }
  EXPECT_TRUE(read("/dev/zero:3 f").lines.empty());
  fs::create_directory(temp_.path() + "/folder.py");
  EXPECT_TRUE(read(temp_.path() + "/folder.py:3 f").lines.empty());
}

TEST_F(SourceLines, OfAFileThatChangedSinceComeWithAWarning) {
  const std::string path = write("train.py", 20);
  const Source source = read_source(path + ":9 f", fs::last_write_time(path) - std::chrono::hours(1));
  EXPECT_EQ(source.lines.size(), 7u);
  EXPECT_TRUE(says(source.why, "changed after")) << source.why;
}

TEST_F(SourceLines, StandInTheVerdictWithTheWholeStack) {
  const std::string path = write("model.py", 30);
  fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(1));
  Session session = blaming(
      {"/usr/lib/python3/site-packages/torch/nn.py:7 linear", path + ":12 forward", path + ":30 <module>"});
  const std::string text = panel_text(session, Panel::verdict);
  EXPECT_TRUE(says(text, "  /usr/lib/python3/site-packages/torch/nn.py:7 linear")) << text;
  EXPECT_TRUE(says(text, "> " + path + ":12 forward")) << "the program's own frame is marked";
  EXPECT_TRUE(says(text, path + ":30 <module>"));
  EXPECT_TRUE(says(text, "Source, " + path));
  EXPECT_TRUE(says(text, "> 12      line(12)")) << text;
  EXPECT_TRUE(says(text, "line(15)"));
  EXPECT_FALSE(says(text, "line(16)"));
  Session elsewhere = blaming({"/home/somebody/model.py:12 forward"});
  EXPECT_TRUE(
      says(panel_text(elsewhere, Panel::verdict), "/home/somebody/model.py was not found on this machine"));
}

TEST_F(SourceLines, SeriesAreThoseOfTheLayersThatTheVerdictNames) {
  Verdict verdict = *session().verdict();
  verdict.culprit.module = "blocks.3.mlp";
  verdict.evidence = {{"weight_norm of head", "12", ""},
                      {"samples of blocks.1.mlp.up.weight", "3", ""},
                      {"overhead", "1", ""}};
  const auto of = [&](const Verdict& v) {
    std::vector<std::string> out;
    for (const LayerSeries& series : series_of(session(), v))
      out.push_back(series.layer + " " + statistic_table(series.statistic));
    return out;
  };
  EXPECT_EQ(of(verdict), (std::vector<std::string>{"blocks.3.mlp.up grad_norm", "blocks.3.mlp.up weight_norm",
                                                   "head grad_norm", "head weight_norm"}));
  verdict.culprit.module = "";
  verdict.evidence.clear();
  EXPECT_TRUE(of(verdict).empty());
  const std::string text = panel_text(session(), Panel::verdict);
  EXPECT_TRUE(says(text, "Series of the layers that it names")) << text;
  EXPECT_TRUE(says(text, "1 NaN, 1 +Inf (first at step 90)"));
}

}  // namespace
}  // namespace nanquest::viewer
