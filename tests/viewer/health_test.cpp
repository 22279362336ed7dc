// What the panels say of a run in which nothing is wrong.
#include "viewer/model/health.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <set>

#include "tests/viewer/story.h"
#include "tests/viewer/watched.h"
#include "viewer/model/links.h"
#include "viewer/model/verdict_page.h"
#include "viewer/panels/registry.h"

namespace nanquest::viewer {
namespace {

TEST(Health, GroupsAreBlocksAlsoBesideOtherLayers) {
  const auto names = [](std::vector<std::string> layers) {
    const std::vector<double> norms(layers.size(), 1);
    std::set<std::string> out;
    for (const auto& [name, norm] :
         gradient_groups(History({{"scalars", {"step"}, {0}}, {"grad_norm", std::move(layers), norms}})))
      out.insert(name);
    return out;
  };
  using Names = std::set<std::string>;
  EXPECT_EQ(
      names({"model.embed", "model.layers.0.up", "model.layers.0.mlp.1", "model.layers.12.up", "lm_head"}),
      (Names{"model.embed", "model.layers.0", "model.layers.12", "lm_head"}));
  EXPECT_EQ(names({"net.encoder.conv.a", "net.encoder.conv.b", "net.decoder"}),
            (Names{"net.encoder.conv", "net.decoder"}));
  EXPECT_EQ(names({"0", "2"}), (Names{"0", "2"}));
}

TEST(Health, GroupsAreTheFirstPartsThatDiffer) {
  const History history(
      {{"scalars", {"step"}, {0, 1}},
       {"grad_norm", {"model.blocks.0.up", "model.blocks.0.down", "model.blocks.1.up"}, {9, 9, 9, 3, 4, 7}}});
  const auto groups = gradient_groups(history);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0], (std::pair<std::string, double>("model.blocks.1", 7))) << "the largest first";
  EXPECT_EQ(groups[1], (std::pair<std::string, double>("model.blocks.0", 5))) << "of the last step";
  EXPECT_TRUE(gradient_groups(History()).empty());
}

TEST(Health, SpeedIsTheMedianOfWhatWasTimed) {
  const double nan = std::nan("");
  const History history({{"scalars", {"step", "seconds"}, {0, nan, 1, 0.25, 2, 0.25, 3, 60}}});
  EXPECT_DOUBLE_EQ(step_seconds(history), 0.25) << "one slow step changes nothing";
  EXPECT_TRUE(std::isnan(step_seconds(History({{"scalars", {"step"}, {0, 1}}}))));
}

class HealthyRun : public testing::Story {
 protected:
  /// A run without incidents; `places`: with headroom.
  Session healthy(bool places) {
    const std::string run = temp_.path() + "/healthy";
    testing::write_run(run);
    if (places) testing::watch(run);
    std::filesystem::remove_all(incidents_dir(run));
    Manifest manifest = *read_manifest(run);
    manifest.incidents.clear();
    if (!write_manifest(run, manifest)) throw std::runtime_error("no manifest could be written");
    testing::write_series(
        run, places ? testing::with_costs(testing::fixture_history(80)) : testing::fixture_history(80));
    return open(run);
  }
  static std::string fact(const std::vector<Fact>& facts, const std::string& label) {
    for (const Fact& each : facts)
      if (each.label == label) return each.text;
    return "none";
  }
};

TEST_F(HealthyRun, EachPanelSaysWhatThereIs) {
  Session session = healthy(true);
  const std::string nearest = "0.25 bits below overflow at step 130";
  for (const Panel panel : {Panel::verdict, Panel::trace, Panel::tensor}) {
    const std::string text = panel_text(session, panel);
    EXPECT_NE(text.find(nearest), std::string::npos) << text;
    EXPECT_NE(text.find(testing::kNear), std::string::npos) << text;
    EXPECT_NE(text.find("L2 at step 79: "), std::string::npos) << text;
    EXPECT_NE(text.find("at most 50 % of a place's values: "), std::string::npos) << text;
  }
}

TEST_F(HealthyRun, MemoryAndTheProbesCostAreSaidInTextAndCsv) {
  Session session = healthy(true);
  const std::string memory =
      "the process takes 1.1 GB at step 79, 1.2 GB at most (resident set); tensors on the device took 3.0 GB "
      "at "
      "most (the allocator's peak)";
  const std::string probe =
      "1.5 % of a step passes inside the probe's functions; watched steps take 0.25 % of the time";
  const std::vector<Fact> facts = health_facts(session);
  EXPECT_EQ(fact(facts, "Memory"), memory);
  EXPECT_EQ(fact(facts, "Probe"), probe);
  EXPECT_EQ(fact(facts, "Speed").substr(0, 33), "50 steps a second, 20 ms each (me");
  for (const char* label : {"Speed", "Probe"})
    for (const Span& span : Names(session).linked(fact(facts, label)))
      EXPECT_FALSE(span.link) << label << ": its numbers name no step";
  for (const Panel panel : {Panel::verdict, Panel::trace, Panel::tensor})
    EXPECT_TRUE(says(panel_text(session, panel), "watched steps take 0.25 %"));
  EXPECT_TRUE(says(*panel_csv(session, Panel::verdict), probe));
  const std::string steps = *panel_csv(session, Panel::timeline);
  EXPECT_TRUE(says(steps, "resident,device_peak,probe_share,watch_share")) << steps.substr(0, 200);
  EXPECT_FALSE(says(panel_text(session, Panel::timeline), "probe_share")) << "no curve of the program";
}

TEST_F(HealthyRun, ASeriesOfAnOlderVersionHasNeither) {
  const std::vector<Fact> facts = health_facts(healthy(false));
  EXPECT_EQ(fact(facts, "Memory"), "not recorded");
  EXPECT_EQ(fact(facts, "Probe"), "not recorded");
}

TEST_F(HealthyRun, WhatIsNotOnRecordIsNotSaid) {
  const std::vector<Fact> facts = health_facts(healthy(false));
  ASSERT_FALSE(facts.empty());
  for (const Fact& fact : facts) {
    EXPECT_NE(fact.label, "Nearest");
    EXPECT_NE(fact.label, "Forecast") << "without headroom nothing can be forecast";
  }
}

TEST_F(HealthyRun, ARunWithAnIncidentIsNone) {
  testing::write_run(dir());
  EXPECT_TRUE(health_facts(open(dir())).empty());
}

}  // namespace
}  // namespace nanquest::viewer
