// The verdict page: what was heard, tried and left open, from verdicts that replay wrote and from ones made
// to be hard to show.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "probe/snapshot/sharing.h"
#include "probe/snapshot/writer.h"
#include "replay/verdict/json.h"
#include "tests/viewer/fixture.h"
#include "viewer/model/verdict_page.h"
#include "viewer/panels/registry.h"

namespace nanquest::viewer {
namespace {

using testing::TempDir;

class Page : public ::testing::Test {
 protected:
  /// A session on the fixture run, whose verdict is what `change` makes of the fixture's.
  Session shown(const std::function<void(Verdict&)>& change) {
    const std::string dir = temp_.path() + "/story";
    const std::string snapshot = testing::write_run(dir);
    Result<Verdict> verdict = verdict_from_json(testing::fixture_verdict());
    EXPECT_TRUE(verdict);
    change(*verdict);
    std::ofstream(verdict_path(snapshot)) << to_json(*verdict);
    Result<Session> session = Session::open(dir);
    EXPECT_TRUE(session) << session.error().text();
    return std::move(session).value();
  }
  TempDir temp_;
};

const PageTable* table(const std::vector<PageTable>& tables, const std::string& title) {
  for (const PageTable& t : tables)
    if (t.title.rfind(title, 0) == 0) return &t;
  return nullptr;
}

const Fact* fact(const VerdictPage& page, const std::string& label) {
  for (const Fact& f : page.facts)
    if (f.label == label) return &f;
  return nullptr;
}

/// Everything of the page that carries the sign.
std::vector<std::string> signed_by(const VerdictPage& page, Sign sign) {
  std::vector<std::string> out;
  for (const Fact& f : page.facts)
    if (f.sign == sign) out.push_back(f.label);
  for (const PageTable& t : verdict_tables(page))
    for (const PageTable::Row& row : t.rows)
      if (row.sign == sign) out.push_back(row.cells.back());
  return out;
}

std::string words_only(const std::string& text) {
  std::istringstream in(text);
  std::string out;
  for (std::string word; in >> word;) out += (out.empty() ? "" : " ") + word;
  return out;
}

TEST_F(Page, EveryClaimStandsWithWhatSpeaksForAndAgainstIt) {
  Session session = shown([](Verdict& v) {
    v.claims.push_back({Label::exp_overflow, {"largest argument: 12"}, {"\"x clamped\" does not help"}});
    v.claims.push_back({Label::domain, {}, {}});
  });
  const std::vector<PageTable> tables = verdict_tables(verdict_page(session));
  const PageTable* claims = table(tables, "Claims");
  ASSERT_NE(claims, nullptr);
  const auto row = [&](std::size_t i) { return claims->rows.at(i).cells; };
  using Cells = std::vector<std::string>;
  EXPECT_EQ(row(0), (Cells{"FP16_OVERFLOW", "the verdict", "for", "4 measured facts, see Evidence"}));
  EXPECT_EQ(row(1), (Cells{"EXP_OVERFLOW", "refuted", "for", "largest argument: 12"}));
  EXPECT_EQ(row(2), (Cells{"", "", "against", "\"x clamped\" does not help"}));
  EXPECT_EQ(row(3), (Cells{"DOMAIN", "not refuted", "", ""}));
  EXPECT_EQ(claims->rows.size(), 4u);
}

TEST_F(Page, OfTwoCausesThatNothingTellsApartNoneIsTheVerdict) {
  Session session = shown([](Verdict& v) {
    v.cause = Label::unknown;
    v.claims = {{Label::log_zero, {"a"}, {}}, {Label::div_zero, {"b"}, {}}};
    v.fix.reset();
  });
  const std::vector<PageTable> tables = verdict_tables(verdict_page(session));
  for (const PageTable::Row& row : table(tables, "Claims")->rows) EXPECT_EQ(row.cells[1], "not refuted");
  EXPECT_EQ(table(tables, "Open")->rows[0].cells[0],
            "whether it is LOG_ZERO or DIV_ZERO: nothing that was tried tells them apart");
}

TEST_F(Page, GreenStandsOnTheVerifiedFixAlone) {
  Session session = shown([](Verdict&) {});
  const VerdictPage page = verdict_page(session);
  ASSERT_TRUE(page.fix_verified());
  EXPECT_EQ(signed_by(page, Sign::verified), (std::vector<std::string>{"Fix", page.fix->change}));
  EXPECT_NE(fact(page, "Fix")->text.find("with \"" + page.fix->change + "\" the step is finite"),
            std::string::npos);
  EXPECT_EQ(fact(page, "Advice")->text, page.fix->advice);
}

TEST_F(Page, AdviceThatNobodyTriedIsNoFix) {
  Session session = shown([](Verdict& v) {
    v.advice = v.fix->advice;
    v.fix.reset();
  });
  const VerdictPage page = verdict_page(session);
  EXPECT_TRUE(signed_by(page, Sign::verified).empty());
  EXPECT_EQ(fact(page, "Fix")->text,
            "none: with \"aten::mm in mlp and the ops that read its result, computed in fp32\" the step is "
            "finite, but no control experiment confirms it");
  ASSERT_FALSE(session.verdict()->advice.empty());
  EXPECT_EQ(fact(page, "Advice")->text, session.verdict()->advice);
}

TEST_F(Page, AFixThatIsNotVerifiedIsNotGreen) {
  Session session =
      shown([](Verdict& v) { v.fix->verified = v.fix->placebo_failed = v.fix->minimal = false; });
  const VerdictPage page = verdict_page(session);
  EXPECT_TRUE(signed_by(page, Sign::verified).empty());
  EXPECT_NE(fact(page, "Fix")->text.find("(not verified)"), std::string::npos);
}

TEST_F(Page, WithoutATrialItSaysThatNothingWasTried) {
  Session session = shown([](Verdict& v) {
    v.fix.reset();
    v.counterfactuals.clear();
    v.advice = "";
  });
  const VerdictPage page = verdict_page(session);
  EXPECT_EQ(fact(page, "Fix")->text, "none: nothing was tried on this step");
  EXPECT_EQ(fact(page, "Advice"), nullptr);
}

TEST_F(Page, PlacebosAreNoFixesAndOneThatHelpsIsACaution) {
  Session session = shown([](Verdict& v) {
    v.counterfactuals.push_back({"a sample that is innocent", ChangeKind::placebo, TrialResult::finite});
    v.counterfactuals.push_back({"an op that cannot run", ChangeKind::op, TrialResult::failed});
  });
  const VerdictPage page = verdict_page(session);
  const std::vector<PageTable> tables = verdict_tables(page);
  const PageTable* placebos = table(tables, "Control experiments");
  ASSERT_NE(placebos, nullptr);
  ASSERT_EQ(placebos->rows.size(), 2u);
  EXPECT_EQ(placebos->rows[0].cells[0], "still non-finite, as it should be");
  EXPECT_EQ(placebos->rows[1].cells[0], "finite: it helps, which it should not");
  EXPECT_EQ(signed_by(page, Sign::caution), std::vector<std::string>{"a sample that is innocent"});
  EXPECT_EQ(signed_by(page, Sign::failed), std::vector<std::string>{"an op that cannot run"});
  for (const PageTable::Row& row : table(tables, "Tried")->rows) EXPECT_NE(row.cells[1], "placebo");
  EXPECT_EQ(table(tables, "Tried")->rows.size(), page.trials.size() - 2);
}

/// With the words of replay's own reports.
TEST_F(Page, AFiniteStepSaysWhyItIsOnRecord) {
  for (const bool found : {false, true}) {
    Session session = shown([&](Verdict& v) {
      v.found = found;
      v.unseen = {};
      v.on_record = "the loss was 7.9, usually 1.9 to 2.3";
      v.cause = Label::spike_data;
      v.fix.reset();
      v.counterfactuals = {{"another sample", ChangeKind::placebo, TrialResult::out_of_range}};
    });
    const VerdictPage page = verdict_page(session);
    const Fact* why = fact(page, found ? "What" : "Why");
    ASSERT_NE(why, nullptr);
    EXPECT_EQ(why->text, "on record because the loss was 7.9, usually 1.9 to 2.3");
    EXPECT_EQ(fact(page, "Fix"), nullptr);
    if (!found) continue;
    const std::vector<PageTable> tables = verdict_tables(page);
    EXPECT_EQ(table(tables, "Control experiments")->rows[0].cells[0],
              "still out of its range, as it should be");
  }
}

TEST_F(Page, RootAndRanksAreFacts) {
  Session session = shown([](Verdict& v) {
    v.root = RootCause{Label::divergence, "learning rate 0.1 instead of 1", 64};
    v.ranks = Ranks{};
    v.ranks->text = "rank 1 made it first";
  });
  const VerdictPage page = verdict_page(session);
  const std::string root = fact(page, "Root")->text;
  for (const char* part : {"DIVERGENCE", "learning rate 0.1 instead of 1", "64 steps"})
    EXPECT_NE(root.find(part), std::string::npos) << root;
  EXPECT_EQ(fact(page, "Ranks")->text, "rank 1 made it first");
}

/// Text and CSV hold every fact and every cell that the panel draws; the panel draws nothing else.
TEST_F(Page, TextAndCsvHoldWhatThePanelDraws) {
  int seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(NANQUEST_GOLDEN_VERDICTS)) {
    const Result<Verdict> verdict = read_verdict(entry.path().string());
    ASSERT_TRUE(verdict);
    Session session = shown([&](Verdict& v) {
      v = *verdict;
      v.claims.push_back({Label::race, {"a fact for it"}, {"a fact against it"}});
    });
    const VerdictPage page = verdict_page(session);
    const std::string text = words_only(panel_text(session, Panel::verdict));
    for (const Fact& f : page.facts) EXPECT_NE(text.find(words_only(f.text)), std::string::npos) << f.text;
    for (const PageTable& t : verdict_tables(page)) {
      EXPECT_NE(text.find(t.title), std::string::npos);
      for (const PageTable::Row& row : t.rows)
        for (const std::string& cell : row.cells)
          EXPECT_NE(text.find(words_only(cell)), std::string::npos) << cell;
    }
    if (!verdict->found) continue;
    ++seen;
    const std::string csv = *panel_csv(session, Panel::verdict);
    EXPECT_NE(csv.find("claim:against,RACE,a fact against it"), std::string::npos) << csv;
    EXPECT_NE(csv.find("fix:verified,"), std::string::npos);
    EXPECT_NE(csv.find("trial:placebo,"), std::string::npos);
  }
  EXPECT_GE(seen, 7);
}

TEST_F(Page, SaysWhatTheFileHasLostSinceItsRunWroteIt) {
  const std::string path = temp_.path() + "/given.h5";
  SnapshotDoc doc = testing::fixture_doc();
  set_sharing(doc, {{"weights (dropped)", "names (renamed)"}, {}, "FP16_OVERFLOW: aten::mm", "a mask"});
  Result<SnapshotWriter> writer = SnapshotWriter::create(path);
  ASSERT_TRUE(writer) << writer.error().text();
  ASSERT_TRUE(writer->write_doc(doc).ok());
  ASSERT_TRUE(writer->commit().ok());
  Result<Session> session = Session::open(path);
  ASSERT_TRUE(session) << session.error().text();
  const VerdictPage page = verdict_page(*session);
  const std::pair<const char*, const char*> expected[] = {
      {"Redacted", "weights (dropped); names (renamed)"},
      {"Original", "its verdict: FP16_OVERFLOW: aten::mm"},
      {"Corrected", "the verdict is wrong: a mask"}};
  for (const auto& [label, text] : expected) {
    const Fact* found = fact(page, label);
    ASSERT_NE(found, nullptr) << label;
    EXPECT_EQ(found->text, text);
    EXPECT_EQ(found->sign, Sign::caution);
  }
  EXPECT_EQ(fact(page, "Left out"), nullptr);
}

}  // namespace
}  // namespace nanquest::viewer
