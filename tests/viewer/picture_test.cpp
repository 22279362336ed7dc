// Pictures drawn without a display: not blank, the same twice, NaN in its colour; and what a PNG file holds.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <set>

#include "probe/snapshot/atomic_file.h"
#include "tests/viewer/fixture.h"
#include "viewer/app/offscreen.h"

namespace nanquest::viewer {
namespace {

using testing::TempDir;

Image picture(const std::string& run, Panel panel, int width = 1280, int height = 800, float scale = 1) {
  Result<Session> session = Session::open(run);
  EXPECT_TRUE(session) << session.error().text();
  Result<Image> image = take_picture(*session, {panel}, width, height, scale);
  EXPECT_TRUE(image) << image.error().text();
  return image ? *image : Image{};
}

int near_colour(const Image& image, int r, int g, int b) {
  int n = 0;
  for (std::size_t i = 0; i + 2 < image.rgb.size(); i += 3)
    n += std::abs(image.rgb[i] - r) <= 3 && std::abs(image.rgb[i + 1] - g) <= 3 &&
         std::abs(image.rgb[i + 2] - b) <= 3;
  return n;
}

class Picture : public ::testing::Test {
 protected:
  void SetUp() override {
    run_ = temp_.path() + "/story";
    testing::write_run(run_);
  }
  TempDir temp_;
  std::string run_;
};

TEST_F(Picture, EveryPanelIsDrawn) {
  std::vector<Panel> panels = {Panel::all};
  for (const PanelInfo& info : all_panels()) panels.push_back(info.panel);
  const std::string of_ranks = temp_.path() + "/ranks";
  testing::write_run(of_ranks);
  testing::write_ranks(of_ranks, 64);
  for (const Panel panel : panels) {
    const Image image = picture(panel == Panel::ranks ? of_ranks : run_, panel);
    ASSERT_EQ(image.rgb.size(), 1280u * 800u * 3u);
    std::set<int> colours;
    int ground = 0;
    for (std::size_t i = 0; i < image.rgb.size(); i += 3) {
      colours.insert(image.rgb[i] << 16 | image.rgb[i + 1] << 8 | image.rgb[i + 2]);
      ground += image.rgb[i] == image.rgb[0] && image.rgb[i + 1] == image.rgb[1] &&
                image.rgb[i + 2] == image.rgb[2];
    }
    EXPECT_GT(colours.size(), 50u) << panel_name(panel);
    EXPECT_LT(ground, 1280 * 800 * 99 / 100) << panel_name(panel);
  }
}

TEST_F(Picture, IsTheSameTwice) {
  EXPECT_EQ(picture(run_, Panel::norms).rgb, picture(run_, Panel::norms).rgb);
  EXPECT_EQ(picture(run_, Panel::all).rgb, picture(run_, Panel::all).rgb);
}

/// A picture is of the run: neither of the moment that it was drawn in, nor of keys.
TEST_F(Picture, IsTheSameLater) {
  const Image now = picture(run_, Panel::all, 1800, 900);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(run_))
    std::filesystem::last_write_time(entry,
                                     std::filesystem::file_time_type::clock::now() - std::chrono::hours(3));
  EXPECT_EQ(now.rgb, picture(run_, Panel::all, 1800, 900).rgb);
}

TEST_F(Picture, NaNAndInfHaveTheirColours) {
  const Image norms = picture(run_, Panel::norms);
  EXPECT_GT(near_colour(norms, 213, 94, 0), 500);     // NaN: vermillion
  EXPECT_GT(near_colour(norms, 204, 121, 167), 300);  // +Inf: pink
}

TEST_F(Picture, ScalesAndSizes) {
  const Image large = picture(run_, Panel::verdict, 1600, 900, 1.5f);
  EXPECT_EQ(large.width, 1600);
  const Image small = picture(run_, Panel::all, 320, 200);
  EXPECT_EQ(small.rgb.size(), 320u * 200u * 3u);
}

TEST_F(Picture, PngUnpacksToTheSamePixels) {
  const Image image = picture(run_, Panel::verdict, 400, 300);
  const std::string path = temp_.path() + "/a.png";
  ASSERT_TRUE(write_png(path, image));
  const Result<Image> back = read_png(path);
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(back->width, 400);
  EXPECT_EQ(back->height, 300);
  EXPECT_EQ(back->rgb, image.rgb);
}

TEST_F(Picture, WhatIsNoPngIsRefused) {
  const std::string path = temp_.path() + "/a.png";
  ASSERT_TRUE(write_png(path, picture(run_, Panel::verdict, 100, 100)));
  const std::string whole = *read_whole_file(path);
  for (const std::string& bytes :
       {std::string(), std::string("no picture"), whole.substr(0, whole.size() / 2)}) {
    ASSERT_TRUE(write_file_atomically(path, bytes));
    const Result<Image> back = read_png(path);
    ASSERT_FALSE(back) << bytes.size();
    EXPECT_EQ(back.error().code, ErrorCode::bad_file);
  }
  EXPECT_FALSE(read_png(temp_.path() + "/none.png"));
}

TEST_F(Picture, AnUnwritablePlaceIsSaid) {
  const Status written = write_png("/proc/none/x.png", Image{1, 1, {0, 0, 0}});
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::io);
}

}  // namespace
}  // namespace nanquest::viewer
