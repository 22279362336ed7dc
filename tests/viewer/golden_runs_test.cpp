// Runs of real programs, recorded once (tests/golden/runs), against golden pictures: a Trainer of
// transformers, and two processes of DistributedDataParallel. The programs that made them lie beside them.
#include <algorithm>
#include <filesystem>

#include "probe/snapshot/run_dir.h"
#include "tests/viewer/fixture.h"
#include "tests/viewer/golden.h"
#include "viewer/app/offscreen.h"
#include "viewer/panels/layouts.h"

namespace nanquest::viewer::testing {
namespace {

namespace fs = std::filesystem;

class GoldenRuns : public ::testing::Test {
 protected:
  /// A copy that was written just now: the window shows how old a run is.
  Image draw(const std::string& run, const UiOptions& options, bool large) {
    const TempDir temp;
    fs::copy(NANQUEST_GOLDEN_RUNS "/" + run, temp.path() + "/" + run, fs::copy_options::recursive);
    for (const auto& file : fs::recursive_directory_iterator(temp.path()))
      fs::last_write_time(file.path(), fs::file_time_type::clock::now());
    const fs::path before = fs::current_path();
    fs::current_path(temp.path());
    Result<Session> session = Session::open(run);
    EXPECT_TRUE(!session || session->complaints().empty()) << session->complaints().front();
    const Result<Image> image = !session ? session.error()
                                : large  ? take_picture(*session, options, 2560, 1440, 2, Theme::light)
                                         : take_picture(*session, options, 1280, 800, 1);
    fs::current_path(before);
    EXPECT_TRUE(image) << image.error().text();
    return !image ? Image{} : large ? halved(*image) : *image;
  }
  static void expect_golden(const Image& image, const std::string& name) {
    EXPECT_TRUE(is_golden(image, NANQUEST_GOLDEN_PICTURES "/runs/" + name + ".png",
                          NANQUEST_WRITTEN_PICTURES "/runs"));
  }
};

TEST_F(GoldenRuns, ATrainerOfTransformers) {
  expect_golden(draw("huggingface", {}, false), "huggingface");
  UiOptions curves;
  curves.layout = layout_from_name("curves");
  expect_golden(draw("huggingface", curves, true), "huggingface_large");
}

TEST_F(GoldenRuns, TwoRanks) {
  expect_golden(draw("two_ranks", {}, false), "two_ranks");
  expect_golden(draw("two_ranks", {Panel::ranks}, true), "two_ranks_large");
}

}  // namespace
}  // namespace nanquest::viewer::testing
