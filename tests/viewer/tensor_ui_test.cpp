// The tensor as it is drawn: from one bad element to the next, hex and bits, what if.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "probe/snapshot/run_dir.h"
#include "probe/snapshot/writer.h"
#include "replay/verdict/replayed_paths.h"
#include "tests/viewer/driver.h"
#include "tests/viewer/story.h"
#include "viewer/panels/tensor/plots.h"
#include "viewer/panels/tensor/view.h"
#include "viewer/ui/marks.h"

namespace nanquest::viewer {
namespace {

using testing::Driver;

class TensorUi : public testing::OpenStory {
 protected:
  void SetUp() override {
    OpenStory::SetUp();
    session().select_tensor("trace/slot_data/000099");
  }
  static TensorPanel& tensor_of(Driver& driver) {
    return static_cast<TensorPanel&>(driver.ui().view(Panel::tensor));
  }
};

TEST_F(TensorUi, NGoesToTheNextBadElementAndShiftNBack) {
  Driver driver(session(), Panel::all, 1600, 1200);
  driver.frame(5);
  for (const std::int64_t want : {70, 71, 200}) {
    driver.press(ImGuiKey_N);
    EXPECT_EQ(session().selection().element, want);
  }
  EXPECT_EQ(driver.ui().state().message, "element 200 of 4,096 [3, 8]: +Inf");
  driver.press(ImGuiKey_N, ImGuiMod_Shift);
  EXPECT_EQ(session().selection().element, 71);
  session().select_tensor("parameters/head.weight");
  driver.frame(3);
  driver.press(ImGuiKey_N);
  EXPECT_EQ(driver.ui().state().message, "head.weight: every element is finite");
  EXPECT_EQ(driver.bad_vertices(), 0);
}

TEST_F(TensorUi, TheElementThatIsLookedAtIsInSight) {
  Driver driver(session(), Panel::tensor, 1280, 1000);
  driver.frame(5);
  EXPECT_TRUE(driver.sees("70##element")) << "the first bad one";
  EXPECT_FALSE(driver.sees("200##element"));
  driver.press(ImGuiKey_N, ImGuiMod_Shift);
  driver.frame(3);
  EXPECT_TRUE(driver.sees("3,000##element")) << "on another page of elements";
  ASSERT_TRUE(driver.click("3,001##element"));
  EXPECT_EQ(session().selection().element, 3001);
  ASSERT_TRUE(driver.click("Next bad"));
  EXPECT_EQ(session().selection().element, 70);
  ASSERT_TRUE(driver.click("Previous bad"));
  EXPECT_EQ(session().selection().element, 3000);
}

/// 8 pictures of 3 channels, 16 x 16: sample 3 is bad in all of them, from its row 4 on.
TEST_F(TensorUi, ThePlaneIsThatOfTheElement) {
  const std::string run = temp_.path() + "/pictures";
  testing::write_run(run, {.poisoned = true});
  for (const bool with_loader : {false, true}) {
    Session pictures = open(run);
    pictures.select_tensor("batch/image");
    Loader loader;
    Driver driver(pictures, Panel::tensor, 1280, 1000, with_loader ? &loader : nullptr);
    const auto settle = [&] {
      driver.frame(3);
      driver.read(loader);
      driver.frame(3);
    };
    settle();
    EXPECT_EQ(tensor_of(driver).plane, 9) << "of the first bad element";
    const TensorSlice* slice = pictures.read_slice(9);
    ASSERT_NE(slice, nullptr);
    EXPECT_EQ(slice->cell_of(pictures.shown_element()), (std::pair<std::int64_t, std::int64_t>{4, 9}));
    const int framed = driver.coloured(ImGui::GetColorU32(colour().strong));
    tensor_of(driver).plane = 0;  // as the person's own choice
    settle();
    EXPECT_EQ(tensor_of(driver).plane, 0);
    EXPECT_LT(driver.coloured(ImGui::GetColorU32(colour().strong)), framed) << "no cell is framed";
    driver.press(ImGuiKey_N, ImGuiMod_Shift);
    settle();
    EXPECT_EQ(tensor_of(driver).plane, 11) << "of the last bad element";
    pictures.select_element(300);
    settle();
    EXPECT_EQ(tensor_of(driver).plane, 1);
    pictures.select_tensor("parameters/head.weight");
    settle();
    EXPECT_EQ(tensor_of(driver).plane, 0);
    EXPECT_EQ(driver.bad_vertices(), 0);
  }
}

/// Against the counts of what fits: numbers at the ends of a band, multiplied by the scale.
TEST(TensorBands, AreWhereAFormatsNumbersAreTimesTheScale) {
  for (const Format format : kFitFormats)
    for (const int scale : {0, 12, -7}) {
      const Band band = band_of(format, scale);
      const auto fit = [&](double exponent) {
        FitCounts counts;
        counts.add(std::exp2(exponent));
        return counts.in(format, scale);
      };
      EXPECT_EQ(fit(band.last), Fit{}) << info(format).name << " " << scale;
      EXPECT_EQ(fit(band.normal), Fit{}) << info(format).name << " " << scale;
      if (format == Format::fp32 || format == Format::bf16) continue;  // a double's exponents end near theirs
      EXPECT_EQ(fit(band.last + 1).overflow, 1U) << info(format).name << " " << scale;
      EXPECT_EQ(fit(band.normal - 1).subnormal, 1U) << info(format).name << " " << scale;
      EXPECT_EQ(fit(band.subnormal).subnormal, 1U) << info(format).name << " " << scale;
      EXPECT_EQ(fit(band.subnormal - 2).flushed, 1U) << info(format).name << " " << scale;
    }
}

TEST_F(TensorUi, TheExponentsSayTheScaleThatTheFormatsAreHeldAt) {
  Driver driver(session(), Panel::tensor, 1280, 1000);
  driver.frame(4);
  const auto label = [] {
    ImPool<ImPlotPlot>& plots = ImPlot::GetCurrentContext()->Plots;
    for (int i = 0; i < plots.GetBufSize(); ++i)
      if (const ImPlotPlot& plot = *plots.GetByIndex(i); plot.Axes[ImAxis_Y1].Scale == ImPlotScale_Log10)
        return std::string(plot.GetAxisLabel(plot.Axes[ImAxis_X1]));
    return std::string();
  };
  EXPECT_EQ(label(), "exponent of 2");
  session().select_what_if({Format::fp16, 12});
  driver.frame(2);
  EXPECT_EQ(label(), "exponent of 2; formats of values times 2^12");
  EXPECT_EQ(driver.bad_vertices(), 0);
}

TEST_F(TensorUi, IsReadOnTheLoadersThread) {
  Loader loader;
  Driver driver(session(), Panel::tensor, 1280, 1000, &loader);
  driver.frame(1);
  EXPECT_EQ(session().read_elements(), nullptr);
  driver.read(loader);
  driver.frame(2);
  EXPECT_NE(session().read_elements(), nullptr);
  for (const std::int64_t want : {70, 71, 200, 1000}) {
    driver.press(ImGuiKey_N);
    driver.read(loader);
    driver.frame(1);
    EXPECT_EQ(session().selection().element, want);
  }
  EXPECT_EQ(driver.ui().state().message, "element 1,000 of 4,096 [15, 40]: NaN");
  driver.press(ImGuiKey_Period);
  EXPECT_EQ(session().selection().what_if.scale, 1) << "and nothing has to be read for that";
  EXPECT_FALSE(loader.busy());
}

TEST_F(TensorUi, HexAndBitsAreASwitchOfTheTable) {
  Driver driver(session(), Panel::tensor, 1280, 1000);
  driver.frame(4);
  const int before = driver.vertices();
  driver.press(ImGuiKey_X);
  driver.frame(3);
  EXPECT_TRUE(tensor_of(driver).bits);
  EXPECT_GT(driver.vertices(), before + 400);
  ASSERT_TRUE(driver.click("Hex and bits"));
  EXPECT_FALSE(tensor_of(driver).bits);
}

TEST_F(TensorUi, CopiesAnElementWithAllItsDigits) {
  Driver driver(session(), Panel::tensor);
  driver.frame(4);
  session().select_element(72);  // -1.1 * 2^12 in fp16
  driver.frame(2);
  driver.press(ImGuiKey_C, ImGuiMod_Shift);
  EXPECT_EQ(std::string(ImGui::GetClipboardText()),
            "trace/slot_data/000099[1, 8] = -4504  0xec66  1 11011 0001100110");
}

TEST_F(TensorUi, KeysAndClicksChooseWhatItIsHeldAgainst) {
  Driver driver(session(), Panel::tensor, 1280, 1000);
  driver.frame(4);
  for (int i = 0; i < 4; ++i) driver.press(ImGuiKey_Period);
  driver.press(ImGuiKey_Comma);
  EXPECT_EQ(session().selection().what_if, (WhatIf{Format::fp16, 3}));
  driver.press(ImGuiKey_W);
  EXPECT_EQ(session().selection().what_if.format, Format::fp8_e5m2);
  ASSERT_TRUE(driver.click("bf16"));
  EXPECT_EQ(session().selection().what_if, (WhatIf{Format::bf16, 3}));
  ASSERT_TRUE(driver.click("+"));
  EXPECT_EQ(session().selection().what_if.scale, 4);
  EXPECT_EQ(driver.bad_vertices(), 0);
}

/// Trying scales adds nothing to the history of places.
TEST_F(TensorUi, BackLeadsToAnElementNotToAScale) {
  Driver driver(session(), Panel::tensor);
  driver.frame(4);
  driver.press(ImGuiKey_N);
  driver.press(ImGuiKey_N);
  driver.press(ImGuiKey_Period);
  driver.press(ImGuiKey_Period);
  driver.press(ImGuiKey_LeftArrow, ImGuiMod_Alt);
  EXPECT_EQ(session().selection().element, 70);
}

/// The output of the culprit: 4 elements, of which the third is +Inf as recorded; and an input, 3 elements
/// of which the second is the farthest from fp64.
void write_culprit(const std::string& snapshot) {
  const std::int32_t op = testing::fixture_doc().culprit.op;
  auto writer = SnapshotWriter::create(replay_path(snapshot));
  ASSERT_TRUE(writer);
  const std::int64_t shape[] = {2, 2};
  for (const std::string run : kReplayedRuns) {
    const float values[] = {1, 2, run == "as_recorded" ? HUGE_VALF : 7e4f, run == "fp64" ? 4.5f : 4.0f};
    ASSERT_TRUE(writer->write_tensor(replayed_values(op, "output", run), {DType::float32, shape, values}));
    const std::int64_t input_shape[] = {3};
    const float inputs[] = {1, run == "fp64" ? 2.75f : 2.5f, run == "fp64" ? 3.125f : 3.0f};
    ASSERT_TRUE(
        writer->write_tensor(replayed_values(op, "self", run), {DType::float32, input_shape, inputs}));
  }
  SnapshotDoc doc;
  doc.step = testing::kBadStep;
  ASSERT_TRUE(writer->write_doc(doc) && writer->commit());
}

TEST_F(TensorUi, TheCulpritsWorstElementsLeadToThem) {
  write_culprit(snapshot_);
  ASSERT_TRUE(session().poll());
  const std::int32_t op = session().incident()->doc.culprit.op;
  Loader loader;
  Driver driver(session(), Panel::tensor, 1400, 1600, &loader);
  for (int i = 0; i < 3; ++i) {
    driver.frame(4);
    driver.read(loader);
  }
  driver.frame(3);
  ASSERT_NE(session().read_culprit_side(), nullptr);
  ASSERT_TRUE(driver.sees("[1, 0]##worst")) << "the element that is finite in fp64 alone";
  EXPECT_LT(driver.items().at("[1, 0]##worst").y0, driver.items().at("[1, 1]##worst").y0)
      << "the worst first";
  EXPECT_LT(driver.items().at("[1, 1]##worst").y0, driver.items().at("[0, 0]##worst").y0);
  ASSERT_TRUE(driver.click("[1, 0]##worst"));
  EXPECT_EQ(session().selection().tensor, replayed_values(op, "output", "as_recorded"));
  EXPECT_EQ(session().selection().element, 2);
  EXPECT_EQ(driver.bad_vertices(), 0);
}

TEST_F(TensorUi, AClickOnAnotherOfTheCulpritsValuesShowsThose) {
  write_culprit(snapshot_);
  ASSERT_TRUE(session().poll());
  const std::int32_t op = session().incident()->doc.culprit.op;
  Loader loader;
  Driver driver(session(), Panel::tensor, 1400, 1600, &loader);
  const auto settle = [&] {
    for (int i = 0; i < 3; ++i) {
      driver.frame(4);
      driver.read(loader);
    }
    driver.frame(3);
  };
  settle();
  ASSERT_NE(session().read_culprit_side(), nullptr);
  EXPECT_EQ(session().read_culprit_side()->name, "output");
  ASSERT_TRUE(driver.click("self##culprit"));
  settle();
  EXPECT_EQ(session().selection().tensor, replayed_values(op, "self", "as_recorded"));
  EXPECT_EQ(session().read_culprit_side()->name, "self");
  EXPECT_FALSE(driver.sees("[1, 0]##worst")) << "those of the output";
  ASSERT_TRUE(driver.sees("1##worst") && driver.sees("2##worst"));
  EXPECT_LT(driver.items().at("1##worst").y0, driver.items().at("2##worst").y0) << "0.25 before 0.125";
  ASSERT_TRUE(driver.click("2##worst"));
  EXPECT_EQ(session().selection().element, 2);
  ASSERT_TRUE(driver.click("output##culprit"));
  settle();
  EXPECT_EQ(session().read_culprit_side()->name, "output");
  EXPECT_EQ(driver.bad_vertices(), 0);
}

}  // namespace
}  // namespace nanquest::viewer
