// Every panel of the fixture run against its golden picture; and the comparison itself, which must tell a
// moved word from a rasteriser's noise.
#include "tests/viewer/golden.h"

#include <filesystem>
#include <functional>
#include <random>

#include "tests/viewer/fixture.h"
#include "viewer/app/offscreen.h"

namespace nanquest::viewer::testing {
namespace {

namespace fs = std::filesystem;

/// High enough for all of the panel, and for no row of the trace to be half hidden.
int height_of(Panel panel) {
  return panel == Panel::verdict    ? 960
         : panel == Panel::timeline ? 520
         : panel == Panel::norms    ? 600
         : panel == Panel::trace    ? 592
         : panel == Panel::tensor   ? 760
         : panel == Panel::batch    ? 560
         : panel == Panel::ranks    ? 616
                                    : 232;
}

std::string golden_path(Panel panel) {
  return NANQUEST_GOLDEN_PICTURES "/" + std::string(panel_name(panel)) + ".png";
}

Image golden(Panel panel) {
  const Result<Image> image = read_png(golden_path(panel));
  EXPECT_TRUE(image) << image.error().text();
  return image ? *image : Image{};
}

/// The fixture run, made in a new folder and opened by a relative path: the panel of runs shows the path.
/// That of ranks shows one of `world` processes.
Image draw(Panel panel, const std::function<void(Session&)>& change = {}, bool replayed = true,
           int incidents = 2, std::int32_t world = 16) {
  const TempDir temp;
  write_run(temp.path() + "/story",
            {.replayed = replayed, .poisoned = panel == Panel::batch, .incidents = incidents});
  if (panel == Panel::ranks) write_ranks(temp.path() + "/story", world);
  const fs::path before = fs::current_path();
  fs::current_path(temp.path());
  Result<Session> session = Session::open("story");
  if (session && change) change(*session);
  const Result<Image> image =
      session ? take_picture(*session, {panel}, 960, height_of(panel), 1) : session.error();
  fs::current_path(before);
  EXPECT_TRUE(image) << image.error().text();
  return image ? *image : Image{};
}

std::vector<Panel> every_panel() {
  std::vector<Panel> panels;
  for (const PanelInfo& info : all_panels()) panels.push_back(info.panel);
  return panels;
}

class GoldenPicture : public ::testing::TestWithParam<Panel> {};

TEST_P(GoldenPicture, IsDrawn) {
  EXPECT_TRUE(is_golden(draw(GetParam()), golden_path(GetParam()), NANQUEST_WRITTEN_PICTURES));
}

/// Neither the folder that the run lies in nor what was drawn before leaves a trace.
TEST_P(GoldenPicture, IsTheSameFromAnotherFolder) {
  EXPECT_EQ(draw(GetParam()).rgb, draw(GetParam()).rgb);
}

INSTANTIATE_TEST_SUITE_P(Panels, GoldenPicture, ::testing::ValuesIn(every_panel()),
                         [](const auto& p) { return std::string(panel_name(p.param)); });

/// What another rasteriser may do: colours a little off everywhere, edges a quarter of a pixel further right.
TEST(GoldenComparison, LetsNoisePass) {
  std::mt19937 random(1);
  for (const Panel panel : every_panel()) {
    const Image drawn = golden(panel);
    Image noisy = drawn;
    for (std::size_t i = 3; i < noisy.rgb.size(); ++i)
      noisy.rgb[i] = static_cast<std::uint8_t>(std::clamp(
          (3 * drawn.rgb[i] + drawn.rgb[i - 3]) / 4 + static_cast<int>(random() % 17) - 8, 0, 255));
    EXPECT_LE(differing(drawn, noisy), kShare) << panel_name(panel);
  }
}

TEST(GoldenComparison, FindsOtherContents) {
  using S = Session&;
  const auto share = [](Panel panel, const Image& drawn) { return differing(golden(panel), drawn); };
  EXPECT_GT(share(Panel::verdict, draw(Panel::verdict, {}, false)), kShare);
  EXPECT_GT(share(Panel::norms, draw(Panel::norms, [](S s) { s.select_layer("head"); })), kShare);
  EXPECT_GT(
      share(Panel::norms, draw(Panel::norms, [](S s) { s.select_statistic(Statistic::gradient_amax); })),
      kShare);
  EXPECT_GT(share(Panel::trace, draw(Panel::trace, [](S s) { s.select_op(54); })), kShare);
  EXPECT_GT(share(Panel::tensor, draw(Panel::tensor, [](S s) { s.select_tensor("parameters/head.weight"); })),
            kShare);
  EXPECT_GT(share(Panel::batch, draw(Panel::batch, [](S s) { s.select_sample(5); })), kShare);
  EXPECT_GT(share(Panel::batch, draw(Panel::batch, {}, false)), kShare);
  EXPECT_GT(share(Panel::timeline, draw(Panel::timeline, [](S s) { s.select_step(60); })), kShare);
  EXPECT_GT(share(Panel::timeline, draw(Panel::timeline, {}, true, 1)), kShare);
  EXPECT_GT(share(Panel::runs, draw(Panel::runs, {}, true, 1)), kShare);
  EXPECT_GT(share(Panel::ranks, draw(Panel::ranks, {}, true, 2, 15)), kShare);
  EXPECT_GT(share(Panel::ranks, draw(Panel::ranks, [](S s) { s.select_step(90); })), kShare);
  EXPECT_EQ(share(Panel::runs, golden(Panel::trace)), 1);  // another size
}

/// A part of a golden picture moved by 3 pixels, left out, or with red and blue swapped (unless it is grey).
TEST(GoldenComparison, FindsAPartThatIsOff) {
  struct Part {
    const char* what;
    Panel panel;
    int x0, y0, x1, y1;
    bool grey;
  };
  for (const Part& part : {Part{"headline", Panel::verdict, 18, 14, 640, 44, true},
                           Part{"one number", Panel::verdict, 205, 624, 273, 642, true},
                           Part{"badge", Panel::verdict, 18, 48, 158, 76, false},
                           Part{"a third of a heat map", Panel::norms, 650, 79, 860, 308, false},
                           Part{"names of layers", Panel::norms, 20, 79, 162, 310, true},
                           Part{"lines", Panel::norms, 166, 346, 860, 538, false},
                           Part{"cells of a tensor", Panel::tensor, 540, 80, 930, 430, false},
                           Part{"bars", Panel::tensor, 100, 200, 460, 450, false},
                           Part{"a status", Panel::runs, 84, 36, 390, 54, true}}) {
    const Image whole = golden(part.panel);
    ASSERT_LT(part.y1, whole.height) << part.what;
    const auto share_with = [&](auto colour) {
      Image off = whole;
      for (int y = part.y0; y < part.y1; ++y)
        for (int x = part.x0; x < part.x1; ++x)
          for (int c = 0; c < 3; ++c)
            off.rgb[static_cast<std::size_t>(3 * (y * off.width + x) + c)] =
                whole.rgb[static_cast<std::size_t>(colour(3 * (y * off.width + x), c))];
      return differing(whole, off);
    };
    EXPECT_GT(share_with([](int at, int c) { return at + 9 + c; }), kShare) << part.what << " moved";
    EXPECT_GT(share_with([](int, int c) { return c; }), kShare) << part.what << " left out";
    EXPECT_TRUE(part.grey || share_with([](int at, int c) { return at + 2 - c; }) > kShare) << part.what;
  }
}

TEST(GoldenComparison, SaysWhatToDo) {
  const TempDir temp;
  const std::string path = temp.path() + "/a.png", written = temp.path() + "/build";
  const Image black{8, 8, std::vector<std::uint8_t>(192, 0)},
      white{8, 8, std::vector<std::uint8_t>(192, 255)};
  EXPECT_FALSE(is_golden(black, path, written, false));  // there is none yet
  EXPECT_TRUE(is_golden(black, path, written, true));
  EXPECT_TRUE(is_golden(black, path, written, false));
  const std::string message = is_golden(white, path, written, false).message();
  for (const std::string& part : {path, written + "/a.png", written + "/a.difference.png",
                                  std::string("100000 of 100,000"), std::string("NANQUEST_UPDATE_GOLDENS=1")})
    EXPECT_NE(message.find(part), std::string::npos) << part << " is not in\n" << message;
  EXPECT_EQ(read_png(written + "/a.png")->rgb, white.rgb);
  const Image shown = *read_png(written + "/a.difference.png");
  EXPECT_EQ(shown.rgb[0], 255);
  EXPECT_EQ(shown.rgb[1], 85);
}

}  // namespace
}  // namespace nanquest::viewer::testing
