// The report: one file that needs no other, with the facts of the panels.
#include "viewer/report/report.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

#include "probe/snapshot/writer.h"
#include "replay/verdict/json.h"
#include "tests/viewer/story.h"
#include "viewer/panels/page_text.h"

namespace nanquest::viewer {
namespace {

class Report : public testing::Story {
 protected:
  void SetUp() override { snapshot_ = testing::write_run(dir(), {.incidents = 2}); }
  static std::string escaped(std::string text) {
    for (const auto& [from, to] : {std::pair{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}})
      for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += std::string(to).size())
        text.replace(at, 1, to);
    return text;
  }
  /// The text of an HTML file: without its tags.
  static std::string words_of(const std::string& html) {
    std::string out;
    bool inside = false;
    for (const char c : html) {
      inside = inside || c == '<';
      if (!inside) out += c;
      inside = inside && c != '>';
    }
    return out;
  }
  /// What every match of a pattern captures.
  static std::vector<std::string> all(const std::string& text, const char* pattern) {
    const std::regex expression(pattern);
    std::vector<std::string> out;
    for (std::sregex_iterator it(text.begin(), text.end(), expression), end; it != end; ++it)
      out.push_back((*it)[1]);
    return out;
  }
  static std::size_t count(const std::string& text, const std::string& part) {
    std::size_t n = 0;
    for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++n;
    return n;
  }
  std::string snapshot_;
};

TEST_F(Report, HtmlNeedsNothingBesideItself) {
  Session session = open(dir());
  const std::vector<ReportPicture> pictures = {
      {Panel::norms, "abc"}, {Panel::tensor, "ab"}, {Panel::timeline, "a"}};
  const std::string html = report_html(session, pictures, "");
  EXPECT_EQ(all(html, "src=\"([^\"]*)\""),
            (std::vector<std::string>{"data:image/png;base64,YQ==", "data:image/png;base64,YWJj",
                                      "data:image/png;base64,YWI="}));
  const std::string both = report_html(session, std::vector<ReportPicture>{{Panel::norms, "abc", "ab"}}, "");
  EXPECT_TRUE(
      says(both,
           "<picture><source media=\"(prefers-color-scheme: dark)\" srcset=\"data:image/png;base64,YWI=\">"));
  EXPECT_TRUE(says(both, "src=\"data:image/png;base64,YWJj\"></picture>")) << "light, and on paper";
  for (const char* outside : {"http:", "https:", "<link", "@import", "url("})
    EXPECT_FALSE(says(html, outside)) << outside;
  for (const char* tag : {"section", "table", "tr", "td", "th", "dl", "dd", "a", "div", "p", "body", "html"})
    EXPECT_EQ(count(html, std::string("<") + tag + " ") + count(html, std::string("<") + tag + ">"),
              count(html, std::string("</") + tag + ">"))
        << tag;
}

TEST_F(Report, EveryLinkLeadsSomewhereAndEveryPlaceIsNamedOnce) {
  Session session = open(dir());
  const std::string html = report_html(session, {}, "");
  const std::vector<std::string> ids = all(html, " id=\"([^\"]*)\"");
  const std::set<std::string> known(ids.begin(), ids.end());
  EXPECT_EQ(known.size(), ids.size()) << "one is named twice";
  const std::vector<std::string> links = all(html, "href=\"#([^\"]*)\"");
  EXPECT_GT(links.size(), 20u);
  for (const std::string& link : links) EXPECT_TRUE(known.count(link)) << link;
  const std::string culprit = "op-" + std::to_string(session.incident()->doc.culprit.op);
  EXPECT_TRUE(known.count(culprit));
  EXPECT_NE(std::find(links.begin(), links.end(), culprit), links.end());
  EXPECT_NE(std::find(links.begin(), links.end(), "step-131"), links.end());
}

/// A tensor's panel shows one of them, and the trace some of its ops: whatever else is named has no place
/// here.
TEST_F(Report, NoLinkLeadsToAnotherPlaceThanItsWordsName) {
  Result<Verdict> verdict = verdict_from_json(testing::fixture_verdict());
  ASSERT_TRUE(verdict);
  verdict->not_tested = {"whether weight_norm of head, or blocks.1.mlp.up.weight, is to blame"};
  std::ofstream(verdict_path(snapshot_)) << to_json(*verdict);
  Session session = open(dir());
  const std::string html = report_html(session, {}, "");
  for (const char* panel : {"verdict", "norms", "trace", "tensor", "runs"})
    EXPECT_EQ(count(html, std::string("href=\"#panel-") + panel + "\""), 1u)
        << panel << ": all but its heading";
  EXPECT_EQ(count(html, "<tr id=\"layer-weight_norm-head\">"), 1u);
  EXPECT_TRUE(says(html, "<a href=\"#layer-weight_norm-head\">head</a>"));
  EXPECT_EQ(count(html, "<tr id=\"layer-grad_norm-head\">"), 1u);
}

TEST_F(Report, CanBeReadOnPaper) {
  Session session = open(dir());
  EXPECT_TRUE(says(report_html(session, {}, ""), "@media print"));
}

TEST_F(Report, ExponentsAreSortedAsNumbers) {
  Session session = open(dir());
  const PanelPage page = all_panels()[static_cast<std::size_t>(Panel::tensor)].page(session, Extent::whole);
  const PageTable& table = page.tables.back();
  ASSERT_EQ(table.title, "By exponent");
  double before = -1e9;
  for (const PageTable::Row& row : table.rows) {
    const double value = std::strtod(row.cells[0].c_str(), nullptr);
    EXPECT_GT(value, before) << row.cells[0];
    before = value;
  }
}

TEST_F(Report, ACarriageReturnEndsNoRow) {
  EXPECT_EQ(markdown_plain("a\r\nb\rc"), "a<br>bc");
}

TEST_F(Report, BothHoldWhatThePanelsSay) {
  Session session = open(dir());
  const std::string words = words_of(report_html(session, {}, "")), markdown = report_markdown(session);
  for (const PanelInfo& info : all_panels()) {
    const PanelPage page = info.page(session, Extent::whole);
    EXPECT_TRUE(says(words, escaped(page.headline))) << page.headline;
    EXPECT_TRUE(says(markdown, std::string("## ") + info.title));
    for (const Fact& fact : page.facts) EXPECT_TRUE(says(words, escaped(fact.text))) << fact.text;
    for (const PageTable& table : page.tables) {
      for (const PageTable::Row& row : table.rows)
        for (const std::string& cell : row.cells) EXPECT_TRUE(says(words, escaped(cell))) << cell;
      EXPECT_GE(count(markdown, "\n| "), table.rows.size());
    }
  }
  EXPECT_TRUE(says(words, "FP16_OVERFLOW"));
  EXPECT_TRUE(says(markdown, "FP16\\_OVERFLOW"));
}

TEST_F(Report, NamesOfARunAreNoMarkup) {
  const std::string bad = "<img src=x onerror=alert(1)>|`*_&\"";
  std::vector<SeriesTable> tables = {{"scalars", {"step", "loss"}, {}}, {"grad_norm", {bad}, {}}};
  for (int i = 0; i < 4; ++i) {
    tables[0].values.insert(tables[0].values.end(), {i * 1.0, 1.0});
    tables[1].values.push_back(1);
  }
  testing::write_series(dir(), tables);
  Session session = open(dir());
  const std::string html = report_html(session, {}, "a <note>");
  EXPECT_FALSE(says(html, "<img"));
  EXPECT_FALSE(says(html, "<note>"));
  EXPECT_TRUE(says(html, escaped(bad)));
  const std::string markdown = report_markdown(session);
  EXPECT_FALSE(says(markdown, "<img"));
  EXPECT_TRUE(says(markdown, "\\|\\`\\*\\_&amp;")) << "and no cell ends at a bar of a name";
}

TEST_F(Report, WithoutItsSnapshotTheVerdictIsLeft) {
  std::filesystem::remove(snapshot_);
  Session session = open(dir());
  const std::string html = report_html(session, {}, "");
  EXPECT_TRUE(says(html, "FP16_OVERFLOW"));
  EXPECT_TRUE(says(html, "its snapshot is not here"));
}

TEST_F(Report, OfALongTraceItHoldsWhatSurroundsTheCulprit) {
  SnapshotDoc doc = testing::fixture_doc();
  for (Slot& slot : doc.slots) slot.data.clear();
  OpRow empty;
  empty.name = "aten::empty";
  doc.ops.resize(10000, empty);
  const std::string path = temp_.path() + "/long.h5";
  Result<SnapshotWriter> writer = SnapshotWriter::create(path);
  ASSERT_TRUE(writer && writer->write_doc(doc) && writer->commit());
  Session session = open(path);
  for (const std::int32_t op : {doc.culprit.op, 5000, 9999}) {
    session.select_op(op);
    const PanelPage page = all_panels()[static_cast<std::size_t>(Panel::trace)].page(session, Extent::whole);
    EXPECT_EQ(page.tables[0].rows.size(), kWholeRows);
    EXPECT_TRUE(says(page.headline, "10,000 ops on record, ")) << page.headline;
    EXPECT_TRUE(
        std::any_of(page.tables[0].rows.begin(), page.tables[0].rows.end(), [&](const PageTable::Row& row) {
          return row.cells[0] == std::to_string(op) && row.cells[1] == ">";
        }));
  }
}

}  // namespace
}  // namespace nanquest::viewer
