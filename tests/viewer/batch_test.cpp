// The batch: what is shown of every tensor and sample, by hand, and the same in text and CSV.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>

#include "probe/snapshot/writer.h"
#include "tests/viewer/damage.h"
#include "tests/viewer/story.h"
#include "viewer/model/batch_page.h"
#include "viewer/panels/registry.h"

namespace nanquest::viewer {
namespace {

class BatchOf : public testing::Story {
 protected:
  /// A snapshot of nothing but a batch; `fill` writes its tensors and names them in the doc.
  Session snapshot(const std::function<void(SnapshotWriter&, SnapshotDoc&)>& fill) {
    SnapshotDoc doc = testing::fixture_doc();
    for (Slot& slot : doc.slots) slot.data.clear();
    doc.sample_ids.clear();
    doc.sample_texts.clear();
    std::filesystem::create_directories(dir());
    Result<SnapshotWriter> writer = SnapshotWriter::create(path());
    EXPECT_TRUE(writer);
    fill(*writer, doc);
    EXPECT_TRUE(writer->write_doc(doc) && writer->commit());
    return open(path());
  }
  template <class T>
  static void add(SnapshotWriter& writer, SnapshotDoc& doc, const std::string& name, DType dtype,
                  const std::vector<std::int64_t>& shape, const std::vector<T>& values) {
    EXPECT_TRUE(writer.write_tensor("batch/" + name, {dtype, shape, values.data()}));
    doc.batch.push_back({name, "batch/" + name, dtype, shape, kNone});
  }
  std::string path() const { return dir() + "/a.h5"; }
};

TEST_F(BatchOf, WholeNumbersAreReadOneByOne) {
  EXPECT_EQ(values_text({7, 7, 12}, 9, 3), "7 7 12");
  EXPECT_EQ(values_text({7, 7, 12, 0, 0, 0, 0}, 9, 7), "7 7 12, 0 x 4");
  EXPECT_EQ(values_text({0, 0, 0, 0, 5, 6}, 9, 6), "0 x 4, 5 6");
  EXPECT_EQ(values_text({1, 1, 1, 1, 2, 2, 2, 2}, 9, 8), "1 x 4, 2 x 4");
  EXPECT_EQ(values_text({1, 2, 3}, 2, 3), "1 2 ...");
  EXPECT_EQ(values_text({1, 2, 3}, 9, 4), "1 2 3 ...") << "there are more than were kept";
  EXPECT_EQ(values_text({}, 9, 0), "");
}

TEST_F(BatchOf, MarksStandForWhatIsNoText) {
  EXPECT_EQ(marked_text("a b\n\tc\x01", {}), "a b\\n\\tc\\x01");
  EXPECT_EQ(marked_text("h?y?", {'h', 0xff, 'y', '?'}), "h\\xffy?") << "tokens that are its bytes say more";
  EXPECT_EQ(marked_text("h?y", {'h', 0xff}), "h\\xffy") << "the target of the last one stands behind it";
  EXPECT_EQ(marked_text("h?y", {12, 900}), "h?y") << "these are no bytes of it";
  EXPECT_EQ(marked_text("\xc3\xa9", {0xc3, 0xa9}), "\xc3\xa9");
}

TEST_F(BatchOf, BadValuesAreCountedBySample) {
  testing::write_run(dir(), {.poisoned = true});
  Session session = open(dir());
  const Batch& batch = *session.batch();
  ASSERT_EQ(batch.samples, 8);
  ASSERT_EQ(batch.tensors.size(), 2u);
  const BatchTensor& image = batch.tensors[0];
  EXPECT_EQ(image.tensor.name, "image");
  EXPECT_TRUE(image.by_sample);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(image.samples[i].nan, i == 3 ? 3u * 7u : 0u) << i;
    EXPECT_EQ(image.samples[i].pos_inf, i == 3 ? 1u : 0u) << i;
  }
  EXPECT_EQ(image.all.min, -1);
  EXPECT_EQ(image.all.max, 1.5);
  const BatchTensor& tokens = batch.tensors[1];
  EXPECT_TRUE(tokens.pictures.empty());
  ASSERT_EQ(tokens.values[5].size(), 128u);
  EXPECT_EQ(*std::ranges::max_element(tokens.values[5]), tokens.samples[5].max);
}

TEST_F(BatchOf, PicturesHaveTheColoursOfTheirPixels) {
  testing::write_run(dir(), {.poisoned = true});
  Session session = open(dir());
  const std::vector<Thumbnail>& pictures = session.batch()->tensors[0].pictures;
  ASSERT_EQ(pictures.size(), 8u);
  EXPECT_EQ(pictures[7].rows, 16);
  const auto at = [&](std::size_t sample, int row, int column) {
    return pictures[sample].cells[static_cast<std::size_t>(row * 16 + column)];
  };
  // -1 … 1.5 is black … white: the disc is 1.5, 1, 0.5 in red, green and blue.
  EXPECT_EQ(at(7, 8, 8).red, 255);
  EXPECT_EQ(at(7, 8, 8).green, 204);
  EXPECT_EQ(at(7, 8, 8).blue, 153);
  EXPECT_EQ(at(0, 0, 0).red, 0);
  EXPECT_EQ(at(3, 4, 9).bad.nan, 3u);
  EXPECT_EQ(at(3, 4, 8).bad.non_finite(), 0u);
  EXPECT_EQ(at(3, 10, 3).bad.pos_inf, 1u);
}

TEST_F(BatchOf, BytesAndChannelsThatComeLastArePicturesToo) {
  std::vector<std::uint8_t> last(2 * 6 * 5 * 3), grey(2 * 6 * 5);
  for (std::size_t i = 0; i < last.size(); ++i) last[i] = static_cast<std::uint8_t>(i % 3 * 100);
  for (std::size_t i = 0; i < grey.size(); ++i) grey[i] = static_cast<std::uint8_t>(i % 5 * 50);
  Session session = snapshot([&](SnapshotWriter& w, SnapshotDoc& doc) {
    add<std::uint8_t>(w, doc, "last", DType::uint8, {2, 6, 5, 3}, last);
    add<std::uint8_t>(w, doc, "grey", DType::uint8, {2, 6, 5}, grey);
    add<float>(w, doc, "hidden", DType::float32, {2, 6, 5}, std::vector<float>(60, 1));
  });
  const std::vector<BatchTensor>& tensors = session.batch()->tensors;
  ASSERT_EQ(tensors[0].pictures.size(), 2u);
  for (const Thumbnail::Cell& cell : tensors[0].pictures[1].cells) {
    EXPECT_EQ(cell.red, 0);
    EXPECT_EQ(cell.green, 127);
    EXPECT_EQ(cell.blue, 255);
  }
  ASSERT_EQ(tensors[1].pictures.size(), 2u);
  for (int i = 0; i < 30; ++i) {
    EXPECT_EQ(tensors[1].pictures[1].cells[static_cast<std::size_t>(i)].red, 255 * (i % 5) / 4);
    EXPECT_EQ(tensors[1].pictures[1].cells[static_cast<std::size_t>(i)].blue, 255 * (i % 5) / 4);
  }
  EXPECT_TRUE(tensors[2].pictures.empty()) << "numbers of words are no picture";
}

TEST_F(BatchOf, LargePicturesAreMadeSmallAndLoseNothingBad) {
  std::vector<float> pixels(1 * 1 * 200 * 100, 0.25f);
  pixels[0] = 0;
  pixels[1] = 1;
  pixels[199 * 100 + 99] = -HUGE_VALF;
  Session session = snapshot([&](SnapshotWriter& w, SnapshotDoc& doc) {
    add<float>(w, doc, "x", DType::float32, {1, 1, 200, 100}, pixels);
  });
  const Thumbnail& small = session.batch()->tensors[0].pictures.at(0);
  EXPECT_EQ(small.rows, 32);
  EXPECT_EQ(small.columns, 32);
  EXPECT_EQ(small.cells.back().bad.neg_inf, 1u);
  EXPECT_EQ(small.cells[500].red, 63);
}

TEST_F(BatchOf, SamplesAreRowsThatTheTensorsAgreeOn) {
  Session agree = snapshot([&](SnapshotWriter& w, SnapshotDoc& doc) {
    add<float>(w, doc, "x", DType::float32, {3, 2}, {1, 2, 3, NAN, 5, 6});
    add<std::int64_t>(w, doc, "y", DType::int64, {3}, {4, 5, 6});
  });
  EXPECT_EQ(batch_page(agree, agree.batch()).samples.size(), 3u);
  EXPECT_EQ(batch_page(agree, agree.batch()).samples[1].holds, "x 3; y 5");
  EXPECT_EQ(batch_page(agree, agree.batch()).samples[1].not_finite, "1 NaN");
  Session differ = snapshot([&](SnapshotWriter& w, SnapshotDoc& doc) {
    add<float>(w, doc, "x", DType::float32, {3, 2}, {1, 2, 3, NAN, 5, 6});
    add<float>(w, doc, "mask", DType::float32, {2, 2}, {1, 2, 3, 4});
  });
  const BatchPage page = batch_page(differ, differ.batch());
  EXPECT_TRUE(page.samples.empty());
  EXPECT_TRUE(says(page.headline, "not on record")) << page.headline;
  EXPECT_EQ(page.tensors[0].not_finite, "1 NaN") << "the tensors are told all the same";
  EXPECT_EQ(page.tensors[1].by, "not by sample");
  Session named = snapshot([&](SnapshotWriter& w, SnapshotDoc& doc) {
    add<float>(w, doc, "x", DType::float32, {3}, {1, 2, 3});
    add<float>(w, doc, "mask", DType::float32, {2, 2}, {1, 2, 3, 4});
    doc.sample_ids = {"a", "b", "c"};
  });
  EXPECT_EQ(batch_page(named, named.batch()).samples[2].id, "c");
  EXPECT_EQ(batch_page(named, named.batch()).samples[2].holds, "x 3");
}

TEST_F(BatchOf, WithoutABatchThatIsSaid) {
  Session session = snapshot([](SnapshotWriter&, SnapshotDoc&) {});
  EXPECT_TRUE(says(panel_text(session, Panel::batch), "No batch is on record"));
  EXPECT_EQ(std::ranges::count(*panel_csv(session, Panel::batch), '\n'), 1);
}

TEST_F(BatchOf, ATensorThatCannotBeReadSaysWhyAndTheOthersAreShown) {
  (void)snapshot([&](SnapshotWriter& w, SnapshotDoc& doc) {
    add<float>(w, doc, "x", DType::float32, {2, 8192}, std::vector<float>(16384, 3));
    add<float>(w, doc, "y", DType::float32, {2}, {7, 8});
  });
  testing::spoil_tensor(path(), "batch/x");
  Session session = open(path());
  const BatchPage page = batch_page(session, session.batch());
  EXPECT_TRUE(says(page.tensors[0].range, "damaged")) << page.tensors[0].range;
  EXPECT_EQ(page.tensors[1].range, "7 to 8");
  EXPECT_EQ(page.samples[1].holds, "y 8") << "what was read of the damaged one is not told";
  EXPECT_TRUE(says(*panel_csv(session, Panel::batch), "damaged"));
}

TEST_F(BatchOf, TextAndCsvHoldTheSameFacts) {
  testing::write_run(dir(), {.poisoned = true});
  Session session = open(dir());
  EXPECT_EQ(session.selection().sample, 3) << "the sample to blame is selected";
  const std::string text = panel_text(session, Panel::batch), csv = *panel_csv(session, Panel::batch);
  EXPECT_TRUE(says(text, "sample 3 (notes.md:4096) of samples 0 to 7; without it the step is finite"))
      << text;
  EXPECT_TRUE(says(csv, ",,,image,float32,\"[8, 3, 16, 16]\",sample,-1,1.5,21,1,0,,\n")) << csv;
  const BatchPage page = batch_page(session, session.batch());
  for (const SampleWords& sample : page.samples) {
    const std::string head =
        std::to_string(sample.number) + "," + sample.id + "," + blamed_words(sample.blamed) + ",";
    EXPECT_TRUE(says(csv, "\n" + head + "image,")) << head;
    EXPECT_TRUE(says(csv, "\n" + head + "tokens,")) << head;
    EXPECT_TRUE(says(text, sample.id));
    EXPECT_TRUE(says(text, sample.text) && says(csv, sample.text)) << sample.text;
    EXPECT_EQ(sample.blamed, sample.number == 3);
    EXPECT_EQ(sample.not_finite, sample.number == 3 ? "21 NaN, 1 +Inf" : "none");
  }
  EXPECT_EQ(std::ranges::count(csv, '\n'), 1 + 2 + 8 * 2);
}

TEST_F(BatchOf, AVeryLargeBatchIsToldAroundWhatIsSelected) {
  Session session = snapshot([&](SnapshotWriter& w, SnapshotDoc& doc) {
    add<std::int64_t>(w, doc, "y", DType::int64, {5000}, std::vector<std::int64_t>(5000, 3));
  });
  session.select_sample(2500);
  const std::string text = panel_text(session, Panel::batch);
  EXPECT_TRUE(says(text, "Samples 2,480 to 2,519 of 5,000")) << text.substr(0, 600);
  EXPECT_EQ(std::ranges::count(*panel_csv(session, Panel::batch), '\n'), 5002);
  session.select_sample(5000);
  EXPECT_EQ(session.selection().sample, 2500) << "there is none of that number";
}

}  // namespace
}  // namespace nanquest::viewer
