// Places of a run by words.
#include "viewer/model/search.h"

#include <set>

#include "probe/snapshot/atomic_file.h"
#include "probe/snapshot/manifest.h"
#include "probe/snapshot/run_dir.h"
#include "replay/verdict/json.h"
#include "tests/viewer/story.h"
#include "viewer/model/words.h"

namespace nanquest::viewer {
namespace {

class Search : public testing::Story {
 protected:
  void SetUp() override { snapshot_ = testing::write_run(dir(), {.incidents = 2}); }
  std::string snapshot_;
};

std::set<std::string> kinds_of(const std::vector<Hit>& hits) {
  std::set<std::string> kinds;
  for (const Hit& hit : hits) kinds.insert(kind_name(hit.link.kind));
  return kinds;
}

TEST_F(Search, HoldsEveryWordAndFindsTheCulpritFirst) {
  const Session session = open(dir());
  const std::vector<Hit> hits = search(session, "MM aten");
  ASSERT_FALSE(hits.empty());
  EXPECT_EQ(hits.front().link.number, session.incident()->doc.culprit.op);
  const Words words("mm aten");
  for (const Hit& hit : hits) EXPECT_TRUE(words.in(hit.label + " " + kind_name(hit.link.kind))) << hit.label;
  EXPECT_TRUE(search(session, "no such thing").empty());
  EXPECT_EQ(kinds_of(search(session, "")),
            (std::set<std::string>{"step", "sample", "layer", "tensor", "op"}));
}

/// Many incidents, layers and tensors leave room for ops.
TEST_F(Search, FindsSomeOfEachKindAndNoMoreThanIsAsked) {
  Manifest manifest = *read_manifest(dir());
  for (int step = 1000; step < 1020; ++step) manifest.incidents.push_back({step, 0, "", "spike", ""});
  ASSERT_TRUE(write_manifest(dir(), manifest));
  const Session session = open(dir());
  const std::vector<Hit> hits = search(session, "", 12);
  EXPECT_EQ(hits.size(), 12u);
  EXPECT_EQ(kinds_of(hits), (std::set<std::string>{"step", "layer", "tensor", "op"}));
}

TEST_F(Search, FindsASampleByItsId) {
  const Session session = open(dir());
  const std::vector<Hit> hits = search(session, "notes.md:77");
  ASSERT_EQ(hits.size(), 1u);
  EXPECT_EQ(hits[0].label, "sample 2 (notes.md:77)");
  EXPECT_EQ(hits[0].link.number, 2);
}

TEST_F(Search, FindsASampleThatIsToBlameFirst) {
  Result<Verdict> verdict = verdict_from_json(testing::fixture_verdict());
  ASSERT_TRUE(verdict);
  verdict->poison = {3};
  verdict->poison_ids = {"notes.md:4096"};
  ASSERT_TRUE(write_file_atomically(verdict_path(snapshot_), to_json(*verdict)));
  const Session session = open(dir());
  const std::vector<Hit> hits = search(session, "sample");
  ASSERT_EQ(hits.size(), 8u);
  EXPECT_EQ(hits[0].label, "sample 3 (notes.md:4096)");
  EXPECT_EQ(hits[0].link, Names(session).linked("sample 3").front().link);
}

}  // namespace
}  // namespace nanquest::viewer
