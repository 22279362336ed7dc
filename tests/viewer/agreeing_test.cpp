// What the panels say of one incident: the same op and line everywhere, and no number that is made up.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "probe/snapshot/atomic_file.h"
#include "probe/snapshot/writer.h"
#include "replay/verdict/json.h"
#include "tests/viewer/story.h"
#include "viewer/model/verdict_page.h"
#include "viewer/panels/registry.h"

namespace nanquest::viewer {
namespace {

namespace fs = std::filesystem;

class Agreeing : public testing::Story {};

TEST_F(Agreeing, ATensorWithoutAFiniteValueHasNoLargestOne) {
  fs::create_directories(dir());
  SnapshotDoc doc = testing::fixture_doc();
  for (Slot& slot : doc.slots) slot.data.clear();
  Result<SnapshotWriter> writer = SnapshotWriter::create(dir() + "/nan.h5");
  ASSERT_TRUE(writer);
  const std::vector<float> values(12, std::nanf(""));
  const std::vector<std::int64_t> shape = {3, 4};
  ASSERT_TRUE(writer->write_tensor("parameters/w", {DType::float32, shape, values.data()}));
  ASSERT_TRUE(writer->write_doc(doc));
  ASSERT_TRUE(writer->commit());
  Session session = open(dir() + "/nan.h5");
  session.select_tensor("parameters/w");
  const std::string text = panel_text(session, Panel::tensor);
  EXPECT_TRUE(says(text, "none is finite")) << text;
  EXPECT_FALSE(says(text, "largest |x|    0")) << text;
}

TEST_F(Agreeing, APartThatWasReadSaysNothingOfTheRest) {
  testing::write_run(dir());
  const Session session = open(dir());
  for (const StoredTensor& tensor : session.incident()->tensors) {
    if (tensor.path != "parameters/head.weight" && tensor.path != "batch/tokens") continue;
    const OpenIncident& incident = *session.incident();
    EXPECT_EQ(not_finite_text(*load_detail(incident.reader, tensor)), "none");
    const TensorDetail part = *load_detail(incident.reader, tensor, 10);
    EXPECT_TRUE(says(not_finite_text(part), "that were read")) << not_finite_text(part);
    const std::string smallest = smallest_text(load_detail(incident.reader, tensor)->scan);
    EXPECT_NE(smallest, "0") << tensor.path << ": no number greater than 0 is 0";
  }
}

TEST_F(Agreeing, LongNamesTouchNoOtherColumn) {
  const std::string layer = "model.decoder.layers.11.self_attention.projection_of_the_queries";
  std::vector<SeriesTable> tables = {{"scalars", {"step"}, {}}, {"grad_norm", {layer, "b"}, {}}};
  for (int i = 0; i < 5; ++i) {
    tables[0].values.push_back(i);
    tables[1].values.insert(tables[1].values.end(), {1.5, 2.5});
  }
  testing::write_series(dir(), tables);
  Session session = open(dir());
  EXPECT_TRUE(says(panel_text(session, Panel::norms), layer + "  "));
  testing::write_run(temp_.path() + "/other");
  SnapshotDoc doc = testing::fixture_doc();
  doc.ops[static_cast<std::size_t>(doc.culprit.op)].name = "aten::" + std::string(40, 'x');
  for (Slot& slot : doc.slots) slot.data.clear();
  const std::string path = temp_.path() + "/long.h5";
  Result<SnapshotWriter> writer = SnapshotWriter::create(path);
  ASSERT_TRUE(writer && writer->write_doc(doc) && writer->commit());
  Session other = open(path);
  EXPECT_TRUE(says(panel_text(other, Panel::trace), std::string(40, 'x') + "  "));
}

TEST_F(Agreeing, EveryPanelNamesTheProgramsOwnLine) {
  SnapshotDoc doc = testing::fixture_doc();
  for (Slot& slot : doc.slots) slot.data.clear();
  OpRow& op = doc.ops[static_cast<std::size_t>(doc.culprit.op)];
  op.stack = static_cast<std::int32_t>(doc.stacks.size());
  doc.stacks.push_back({"/usr/lib/python3/dist-packages/torch/nn/functional.py:9 linear", "train.py:7 main"});
  fs::create_directories(dir());
  Result<SnapshotWriter> writer = SnapshotWriter::create(dir() + "/a.h5");
  ASSERT_TRUE(writer && writer->write_doc(doc) && writer->commit());
  Session session = open(dir() + "/a.h5");
  EXPECT_TRUE(says(panel_text(session, Panel::verdict), "train.py:7 main"));
  const std::string trace = panel_text(session, Panel::trace);
  EXPECT_TRUE(says(trace, "train.py:7 main")) << trace;
  EXPECT_FALSE(says(trace, "functional.py:9")) << trace;
  EXPECT_TRUE(says(*panel_csv(session, Panel::trace), "train.py:7 main"));
}

TEST_F(Agreeing, EveryPanelBlamesTheOpThatTheVerdictBlames) {
  const std::string snapshot = testing::write_run(dir());
  const SnapshotDoc doc = testing::fixture_doc();
  const std::int32_t recorded = doc.culprit.op, blamed = recorded - 1;
  Verdict verdict = *verdict_from_json(testing::fixture_verdict());
  verdict.culprit.index = blamed;
  verdict.culprit.op = doc.ops[static_cast<std::size_t>(blamed)].name;
  ASSERT_TRUE(write_file_atomically(verdict_path(snapshot), to_json(verdict)));
  Session session = open(dir());
  const OpenIncident& incident = *session.incident();
  EXPECT_EQ(session.selection().op, blamed);
  EXPECT_EQ(incident.doc.culprit.op, blamed);
  EXPECT_EQ(incident.trace.mark(OpId{blamed}), OpMark::culprit);
  EXPECT_EQ(incident.trace.mark(OpId{recorded}), OpMark::birth) << "it still made bad values itself";
  EXPECT_FALSE(incident.doc.culprit.lineage.empty());
  EXPECT_EQ(incident.doc.culprit.lineage.front(), blamed) << "the way to the loss begins there";
}

TEST_F(Agreeing, WholeNumbersHaveNoAmaxOfTheirFormat) {
  SnapshotDoc doc = testing::fixture_doc();
  for (Slot& slot : doc.slots) slot.data.clear();
  for (TensorRow& row : doc.tensors)
    if (row.dtype == DType::int64) doc.stats[static_cast<std::size_t>(row.stats)].amax = 255;
  OpRow count = doc.ops[0];  // reads the tokens alone
  count.name = "aten::bincount";
  count.first_arg += 1;
  count.arg_count = 1;
  count.output_count = count.written_count = 0;
  doc.ops.push_back(count);
  fs::create_directories(dir());
  Result<SnapshotWriter> writer = SnapshotWriter::create(dir() + "/a.h5");
  ASSERT_TRUE(writer && writer->write_doc(doc) && writer->commit());
  const Session session = open(dir() + "/a.h5");
  const TraceView& trace = session.incident()->trace;
  const TraceLine line = trace.line(OpId{trace.size() - 1});
  EXPECT_EQ(line.read_formats, "i64");
  EXPECT_EQ(amax_text(line.read), "-") << "not 0";
}

}  // namespace
}  // namespace nanquest::viewer
