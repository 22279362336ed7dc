// A whole run through viewer/model: opening, the linked selection, text and CSV, bad files.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "probe/snapshot/series.h"
#include "probe/snapshot/writer.h"
#include "replay/verdict/json.h"
#include "tests/viewer/fixture.h"
#include "viewer/model/session.h"
#include "viewer/model/verdict_page.h"
#include "viewer/panels/registry.h"

namespace nanquest::viewer {
namespace {

namespace fs = std::filesystem;
using testing::TempDir;

class Run : public ::testing::Test {
 protected:
  Session open(const testing::FixtureOptions& options = {}) {
    snapshot_ = testing::write_run(dir(), options);
    Result<Session> session = Session::open(dir());
    EXPECT_TRUE(session) << session.error().text();
    return std::move(session).value();
  }
  std::string dir() const { return temp_.path() + "/story"; }
  TempDir temp_;
  std::string snapshot_;
};

TEST_F(Run, OpensOnTheCulprit) {
  Session session = open();
  ASSERT_NE(session.incident(), nullptr);
  const SnapshotDoc& doc = session.incident()->doc;
  EXPECT_EQ(session.selection().op, doc.culprit.op);
  EXPECT_EQ(session.selection().step, 131);
  EXPECT_EQ(session.selection().layer, "blocks.3.mlp.up");
  EXPECT_EQ(session.selection().tensor, "parameters/blocks.3.mlp.down.weight");
  EXPECT_EQ(session.history().rows(), 132u);
  EXPECT_EQ(session.title(), "story");
}

TEST_F(Run, VerdictPageAnswersTheQuestionsInOrder) {
  Session session = open();
  const VerdictPage page = verdict_page(session);
  EXPECT_EQ(page.state, VerdictPage::State::diagnosed);
  EXPECT_EQ(page.headline, "aten::mm in blocks.3.mlp made the first +Inf at step 131");
  EXPECT_EQ(page.cause, Label::fp16_overflow);
  const char* labels[] = {"What",  "Where",    "Why",       "Fix",       "Advice",
                          "Blame", "Confidence", "Precision", "Proven by", "Source"};
  ASSERT_EQ(page.facts.size(), std::size(labels));
  for (std::size_t i = 0; i < std::size(labels); ++i) {
    EXPECT_EQ(page.facts[i].label, labels[i]);
    EXPECT_FALSE(page.facts[i].text.empty());
  }
  EXPECT_EQ(page.facts[0].text, "17 +Inf in the output of aten::mm; the first at index [0, 40]");
  EXPECT_EQ(page.facts[6].text.substr(0, 4), "85 %");
  EXPECT_TRUE(session.verdict()->reproduction.bit_exact);
  EXPECT_TRUE(page.fix_verified());
  EXPECT_EQ(page.trials.size(), 6u);
  EXPECT_TRUE(page.command.empty());
}

TEST_F(Run, EveryVerdictThatReplayWroteIsShown) {
  Session session = open({.replayed = false});
  int shown = 0;
  for (const auto& entry : fs::directory_iterator(NANQUEST_GOLDEN_VERDICTS)) {
    const Result<Verdict> verdict = read_verdict(entry.path().string());
    ASSERT_TRUE(verdict) << verdict.error().text();
    fs::copy_file(entry.path(), verdict_path(snapshot_), fs::copy_options::overwrite_existing);
    ASSERT_TRUE(session.reload()) << entry.path();
    const std::string text = panel_text(session, Panel::verdict);
    ++shown;
    if (!verdict->found) {
      EXPECT_NE(text.find("nothing harmful"), std::string::npos) << text;
      continue;
    }
    EXPECT_EQ(verdict_page(session).cause, verdict->cause);
    EXPECT_NE(text.find(meaning(verdict->cause)), std::string::npos) << text;
    for (const Evidence& e : verdict->evidence) EXPECT_NE(text.find(e.name), std::string::npos) << text;
    for (const Counterfactual& c : verdict->counterfactuals)
      EXPECT_NE(text.find(c.change), std::string::npos) << text;
    ASSERT_TRUE(verdict->fix.has_value());
    EXPECT_NE(verdict_page(session).facts[3].text.find(verdict->fix->change), std::string::npos);
  }
  EXPECT_GE(shown, 9);
}

TEST_F(Run, WithoutAVerdictItNamesTheCommand) {
  testing::FixtureOptions options;
  options.replayed = false;
  Session session = open(options);
  const VerdictPage page = verdict_page(session);
  EXPECT_EQ(page.state, VerdictPage::State::not_replayed);
  EXPECT_EQ(page.command, "nanquest-replay " + snapshot_);
  EXPECT_NE(panel_text(session, Panel::verdict).find("not replayed yet: run nanquest-replay"),
            std::string::npos);
  // The verdict arrives while the viewer is open.
  std::ofstream(verdict_path(snapshot_)) << testing::fixture_verdict();
  EXPECT_TRUE(session.poll());
  EXPECT_EQ(verdict_page(session).state, VerdictPage::State::diagnosed);
  EXPECT_FALSE(session.poll());
}

TEST_F(Run, AStepThatNobodyWatchedHasWhatReplayFound) {
  const SnapshotDoc watched = testing::fixture_doc();
  Session session = open({.watched = false});
  ASSERT_NE(session.incident(), nullptr);
  const OpenIncident& incident = *session.incident();
  ASSERT_EQ(incident.reader.doc().culprit.op, kNone) << "the recording itself has none";
  const OpId culprit{watched.culprit.op};
  EXPECT_EQ(incident.doc.culprit.op, watched.culprit.op);
  EXPECT_EQ(incident.trace.mark(culprit), OpMark::culprit);
  EXPECT_EQ(incident.trace.line(culprit).written.pos_inf, 17u);
  EXPECT_GT(incident.trace.line(culprit).read.amax, 0);
  EXPECT_TRUE(session.complaints().empty());
}

TEST_F(Run, AReplayFileOfAnotherRecordingIsSaidAndNotUsed) {
  (void)open({.watched = false});
  SnapshotDoc other = testing::fixture_doc();
  other.basis = "survivors";
  other.ops[0].name = "aten::other";
  for (Slot& slot : other.slots) slot.data.clear();
  Result<SnapshotWriter> writer = SnapshotWriter::create(replay_path(snapshot_));
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->write_doc(other));
  ASSERT_TRUE(writer->commit());
  const Result<Session> session = Session::open(snapshot_);
  ASSERT_TRUE(session) << session.error().text();
  const auto blamed = static_cast<std::int32_t>(session->verdict()->culprit.index);
  EXPECT_EQ(session->incident()->doc.culprit.op, blamed) << "the verdict is of this recording";
  EXPECT_FALSE(session->incident()->trace.line(OpId{blamed}).written.known) << "the statistics are not";
  ASSERT_EQ(session->complaints().size(), 1u);
  EXPECT_NE(session->complaints()[0].find("another recording"), std::string::npos);
}

TEST_F(Run, SelectionIsLinked) {
  Session session = open();
  session.select_op(0);  // the embedding
  EXPECT_EQ(session.selection().layer, "token_embedding");
  EXPECT_EQ(session.selection().tensor, "parameters/token_embedding.weight");
  session.select_layer("head");
  EXPECT_EQ(session.selection().tensor, "parameters/head.weight");
  session.select_tensor("parameters/blocks.1.attention.proj.weight");
  EXPECT_EQ(session.selection().layer, "blocks.1.attention.proj");
  session.select_op(1 << 30);
  session.select_tensor("no such tensor");
  EXPECT_EQ(session.selection().tensor, "parameters/blocks.1.attention.proj.weight");
}

TEST_F(Run, ReloadKeepsTheSelection) {
  Session session = open();
  session.select_op(5);
  session.select_statistic(Statistic::weight);
  const Selection before = session.selection();
  ASSERT_TRUE(session.reload());
  EXPECT_EQ(session.selection(), before);
}

TEST_F(Run, WalksAlongProducers) {
  Session session = open();
  const TraceView& trace = session.incident()->trace;
  const OpId culprit{session.incident()->doc.culprit.op}, before = trace.walk_back(culprit);
  ASSERT_TRUE(before);
  EXPECT_EQ(trace.line(before).name, "aten::gelu");
  EXPECT_EQ(trace.walk_forward(before), culprit);
  EXPECT_EQ(trace.mark(culprit), OpMark::culprit);
  EXPECT_EQ(trace.mark(trace.walk_forward(culprit)), OpMark::lineage);
  EXPECT_EQ(trace.line(culprit).written.pos_inf, 17u);
  EXPECT_LT(trace.line(culprit).written.headroom, 1);
}

TEST_F(Run, FilterFindsWordsAnywhere) {
  Session session = open();
  const TraceView& trace = session.incident()->trace;
  EXPECT_EQ(trace.filter("").size(), trace.size());
  EXPECT_EQ(trace.filter("SOFTMAX blocks.2").size(), 1u);
  EXPECT_EQ(trace.filter("backward MmBackward0").size(), 2u);
  EXPECT_TRUE(trace.filter("nothing like it").empty());
}

std::size_t columns_of(const std::string& line) {
  std::size_t n = 1;
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') quoted = !quoted;
    if (c == ',' && !quoted) ++n;
  }
  return n;
}

TEST_F(Run, EveryPanelHasTextAndRectangularCsv) {
  testing::FixtureOptions options;
  options.incidents = 2;
  (void)open(options);
  testing::write_ranks(dir(), 6);
  Result<Session> opened = Session::open(dir());
  ASSERT_TRUE(opened);
  Session& session = *opened;
  for (const PanelInfo& panel : all_panels()) {
    EXPECT_GT(panel_text(session, panel.panel).size(), 100u) << panel.name;
    EXPECT_EQ(panel_from_name(panel.name), panel.panel);
    EXPECT_NE(panel_choice(true).find(panel.name), std::string::npos);
    const Result<std::string> csv = panel.csv(session);
    ASSERT_TRUE(csv) << csv.error().text();
    std::istringstream lines(*csv);
    std::string header;
    std::getline(lines, header);
    std::size_t rows = 0;
    for (std::string line; std::getline(lines, line); ++rows)
      EXPECT_EQ(columns_of(line), columns_of(header)) << line;
    EXPECT_GE(rows, 2u) << panel.name;
  }
  EXPECT_FALSE(panel_csv(session, Panel::all));
}

TEST_F(Run, CsvOfNormsReadsBackExactly) {
  Session session = open();
  const Result<std::string> csv = panel_csv(session, Panel::norms);
  ASSERT_TRUE(csv);
  std::istringstream lines(*csv);
  std::string line;
  std::getline(lines, line);
  const std::vector<SeriesTable> want = testing::fixture_history();
  const std::size_t layers = want[1].columns.size();
  for (std::size_t r = 0; std::getline(lines, line); ++r) {
    std::vector<std::string> fields;
    std::istringstream row(line);
    for (std::string f; std::getline(row, f, ',');) fields.push_back(f);
    ASSERT_EQ(fields.size(), 6 + layers);
    for (std::size_t l = 0; l < layers; ++l) {
      const double a = std::stod(fields[6 + l]), b = want[1].values[r * layers + l];
      EXPECT_TRUE(a == b || (std::isnan(a) && std::isnan(b))) << r << ' ' << l;
    }
  }
}

TEST_F(Run, TensorWithNonFiniteValues) {
  Session session = open();
  session.select_tensor("trace/slot_data/000099");
  const TensorDetail* detail = session.tensor_detail();
  ASSERT_NE(detail, nullptr) << session.tensor_error();
  EXPECT_EQ(detail->scan.nan, 3u);
  EXPECT_EQ(detail->scan.pos_inf, 2u);
  EXPECT_EQ(detail->scan.neg_inf, 1u);
  EXPECT_EQ(detail->scan.first_bad, 70);
  const TensorSlice* slice = session.tensor_slice(0);
  ASSERT_NE(slice, nullptr);
  EXPECT_EQ(slice->at(70 / 64, 70 % 64).nan, 1u);
  EXPECT_EQ(slice->at(3000 / 64, 3000 % 64).neg_inf, 1u);
  std::uint64_t bars = 0;
  for (const std::uint64_t n : detail->histogram) bars += n;
  EXPECT_EQ(bars + detail->scan.zero + detail->scan.non_finite(), detail->scan.count);
}

TEST_F(Run, SnapshotAloneBringsItsOwnHistory) {
  open();
  Result<Session> alone = Session::open(snapshot_);
  ASSERT_TRUE(alone) << alone.error().text();
  EXPECT_FALSE(alone->is_run());
  EXPECT_EQ(alone->history().rows(), 132u);
  EXPECT_EQ(verdict_page(*alone).cause, Label::fp16_overflow);
}

TEST_F(Run, FollowsARunThatIsBeingWritten) {
  testing::FixtureOptions options;
  Session session = open(options);
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t writer_process = fork();  // HDF5 does not let one process write and follow the same file
  if (writer_process == 0) {
    const std::vector<SeriesTable> more = testing::fixture_history(140);
    Result<SeriesWriter> writer = SeriesWriter::create(series_path(dir(), 0), more);
    bool good = writer.ok();
    for (std::size_t r = 0; good && r < 140; ++r) {
      std::vector<std::span<const double>> rows;
      for (const SeriesTable& t : more)
        rows.emplace_back(t.values.data() + r * t.columns.size(), t.columns.size());
      good = writer->append(rows).ok();
    }
    good = good && writer->flush().ok();
    const char answer = good ? '+' : '-';
    if (write(ready[1], &answer, 1) == 1) pause();
    _exit(0);
  }
  char answer = 0;
  ASSERT_EQ(read(ready[0], &answer, 1), 1);
  EXPECT_EQ(answer, '+');
  EXPECT_TRUE(session.poll());  // the writer still has the file open
  EXPECT_EQ(session.history().rows(), 140u) << session.series_error();
  kill(writer_process, SIGKILL);
  waitpid(writer_process, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
}

TEST_F(Run, BadFilesAreNamedWithAWayOut) {
  open();
  const auto refuse = [](const std::string& path) {
    const Result<Session> session = Session::open(path);
    ASSERT_FALSE(session) << path;
    EXPECT_EQ(exit_code(session.error().code), 3);
    EXPECT_NE(session.error().text().find(fs::path(path).filename().string()), std::string::npos)
        << session.error().text();
    EXPECT_EQ(session.error().text().find('\n'), std::string::npos);
  };
  refuse(temp_.path() + "/nothing-here");
  fs::create_directories(temp_.path() + "/empty");
  refuse(temp_.path() + "/empty");
  refuse("/dev/null");
  const auto size = fs::file_size(snapshot_);
  for (const double part : {0.0, 0.3, 0.9}) {
    const std::string cut = temp_.path() + "/cut.h5";
    fs::copy_file(snapshot_, cut, fs::copy_options::overwrite_existing);
    fs::resize_file(cut, static_cast<std::uintmax_t>(static_cast<double>(size) * part));
    refuse(cut);
  }
  std::ofstream(temp_.path() + "/text.h5") << "this is no HDF5 file, whatever its name says";
  refuse(temp_.path() + "/text.h5");
}

TEST_F(Run, ABadSnapshotInARunIsShownNotRefused) {
  testing::FixtureOptions options;
  options.replayed = false;
  snapshot_ = testing::write_run(dir(), options);
  fs::resize_file(snapshot_, 100);
  Result<Session> session = Session::open(dir());
  ASSERT_TRUE(session) << session.error().text();
  EXPECT_EQ(session->incident(), nullptr);
  EXPECT_NE(session->incident_error().find("step-00000131.r0.h5"), std::string::npos);
  for (const Panel panel : {Panel::verdict, Panel::norms, Panel::trace, Panel::tensor, Panel::runs})
    EXPECT_FALSE(panel_text(*session, panel).empty());
}

TEST_F(Run, ABadVerdictFileIsSaid) {
  testing::FixtureOptions options;
  options.replayed = false;
  snapshot_ = testing::write_run(dir(), options);
  std::ofstream(verdict_path(snapshot_)) << "{\"format\":\"nanquest.verdict\",\"version\":9}";
  Result<Session> session = Session::open(dir());
  ASSERT_TRUE(session);
  EXPECT_NE(verdict_page(*session).facts[2].text.find("newer"), std::string::npos);
}

TEST_F(Run, RunWithoutIncidents) {
  testing::FixtureOptions options;
  snapshot_ = testing::write_run(dir(), options);
  fs::remove_all(dir() + "/incidents");
  Result<Session> session = Session::open(dir());
  ASSERT_TRUE(session) << session.error().text();
  EXPECT_NE(verdict_page(*session).headline.find("its incident file is not here"), std::string::npos);
  EXPECT_FALSE(panel_text(*session, Panel::all).empty());
}

}  // namespace
}  // namespace nanquest::viewer
