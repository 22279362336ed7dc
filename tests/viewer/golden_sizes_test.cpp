// What large things look like, against golden pictures: a folder of 50 runs in two sizes, a decoder of 300
// blocks, and the whole window on 120,000 steps.
#include <chrono>
#include <cmath>
#include <filesystem>
#include <functional>
#include <random>

#include "tests/viewer/fixture.h"
#include "tests/viewer/golden.h"
#include "viewer/app/offscreen.h"
#include "viewer/panels/layouts.h"

namespace nanquest::viewer::testing {
namespace {

namespace fs = std::filesystem;

class GoldenSizes : public ::testing::Test {
 protected:
  /// Opened by a relative path: titles show it.
  Image draw(const std::string& what, const UiOptions& options, bool large = false,
             const std::function<void(Session&)>& change = {}) {
    const fs::path before = fs::current_path();
    fs::current_path(temp_.path());
    Result<Session> session = Session::open(what);
    if (session && change) change(*session);
    const Result<Image> image = !session ? session.error()
                                : large  ? take_picture(*session, options, 2560, 1440, 2, Theme::light)
                                         : take_picture(*session, options, 1280, 720, 1);
    fs::current_path(before);
    EXPECT_TRUE(image) << image.error().text();
    return image ? *image : Image{};
  }
  static void expect_golden(const Image& image, const std::string& name) {
    EXPECT_TRUE(is_golden(image, NANQUEST_GOLDEN_PICTURES "/sizes/" + name + ".png",
                          NANQUEST_WRITTEN_PICTURES "/sizes"));
  }
  TempDir temp_;
};

/// Two steps compared, in both sizes (tests/viewer/step_diff_test.cpp).
TEST_F(GoldenSizes, TwoStepsCompared) {
  fs::copy_file(NANQUEST_GOLDEN_PICTURES "/../diff-1.json", temp_.path() + "/diff.json");
  expect_golden(draw("diff.json", {}), "diff");
  expect_golden(halved(draw("diff.json", {}, true)), "diff_large");
}

/// Every run of the folder has its own command, steps and age; of five kinds.
TEST_F(GoldenSizes, AFolderOf50Runs) {
  const auto now = fs::file_time_type::clock::now();
  for (int i = 0; i < 50; ++i) {
    const std::string run =
        temp_.path() + "/night/" + (i % 2 == 0 ? "sweep/" : "") + "lr-" + std::to_string(i);
    const int kind = i % 5;
    write_run(run, {.replayed = kind != 1, .incidents = kind == 2 ? 2 : 1});
    Manifest manifest = *read_manifest(run);
    manifest.command =
        "python train.py --lr " + std::to_string(i) + "e-5 --batch 64 --out night/lr-" + std::to_string(i);
    if (kind >= 3) {
      fs::remove_all(incidents_dir(run));
      manifest.incidents.clear();
      manifest.status = kind == 3 ? "finished" : "running";
      manifest.outcome = "";
    }
    if (i == 8) manifest.findings = {{48, 0, "nothing_learned", "NO_GRADIENT", "", "", "no gradient"}};
    ASSERT_TRUE(write_manifest(run, manifest));
    write_series(run, fixture_history(40 + i));
    const auto when = now - std::chrono::seconds(20 + 60 * i * i);
    for (const std::string& path : {manifest_path(run), series_path(run, 0)}) fs::last_write_time(path, when);
  }
  expect_golden(draw("night", {}), "folder");
  expect_golden(halved(draw("night", {}, true)), "folder_large");
}

/// Six learning rates: their losses are noisy, one run was cut short.
TEST_F(GoldenSizes, SixRunsTogether) {
  std::vector<std::string> beside;
  for (int i = 0; i < 6; ++i) {
    const std::string run = "night/lr-" + std::to_string(i);
    write_run(temp_.path() + "/" + run, {.replayed = i != 2, .incidents = 1});
    Manifest manifest = *read_manifest(temp_.path() + "/" + run);
    manifest.config = {{"lr", std::to_string(i + 1) + "e-3"}, {"batch", i == 3 ? "64" : "32"}};
    ASSERT_TRUE(write_manifest(temp_.path() + "/" + run, manifest));
    std::vector<SeriesTable> tables = fixture_history(i == 4 ? 90 : 132);
    std::mt19937 random(static_cast<unsigned>(i));
    for (std::size_t row = 0; row < tables[0].rows(); ++row) {
      column_of(tables, "scalars", "loss")[row] *=
          (0.8 + 0.08 * i) * (0.95 + 0.1 * static_cast<double>(random() % 1000) / 1000);
      column_of(tables, "scalars", "lr")[row] *= 0.5 + 0.25 * i;
      column_of(tables, "scalars", "grad_norm")[row] *=
          std::exp(0.3 * i - 0.004 * i * static_cast<double>(row));
    }
    write_series(temp_.path() + "/" + run, tables);
    if (i > 0) beside.push_back(run);
  }
  const auto together = [&](double weight) {
    return [&beside, weight](Session& session) {
      EXPECT_TRUE(session.compare_with(beside));
      session.select_smoothing(weight);
    };
  };
  expect_golden(draw("night/lr-0", {Panel::timeline}, false, together(0)), "together");
  UiOptions compared;
  compared.layout = layout_from_name("compare");
  expect_golden(halved(draw("night/lr-0", compared, true, together(0.9))), "together_large");
}

TEST_F(GoldenSizes, ADecoderOf300Blocks) {
  std::vector<SeriesTable> tables = {{"scalars", {"step", "loss", "gate"}, {}},
                                     {"grad_norm", {"model.embed_tokens.weight"}, {}}};
  for (int b = 0; b < 300; ++b)
    for (const char* part : {"self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight",
                             "self_attn.o_proj.weight", "mlp.gate_proj.weight", "mlp.up_proj.weight",
                             "mlp.down_proj.weight", "input_layernorm.weight"})
      tables[1].columns.push_back("model.layers." + std::to_string(b) + "." + part);
  tables[1].columns.insert(tables[1].columns.end(), {"model.norm.weight", "lm_head.weight"});
  constexpr int kSteps = 120;
  std::mt19937 random(7);
  for (int step = 0; step < kSteps; ++step) {
    tables[0].values.insert(tables[0].values.end(), {1.0 * step, 3 - 0.01 * step, 0});
    for (std::size_t c = 0; c < tables[1].columns.size(); ++c) {
      const double depth = static_cast<double>(c) / static_cast<double>(tables[1].columns.size());
      double value = (0.2 + depth) * std::exp(0.02 * step * depth) *
                     (0.8 + 0.4 * static_cast<double>(random() % 1000) / 1000);
      if (c == 1500 && step == 60) value = 1e15;
      if (c == 2000 && step > 110) value = NAN;
      tables[1].values.push_back(value);
    }
  }
  fs::create_directories(temp_.path() + "/decoder");
  write_series(temp_.path() + "/decoder", tables);
  expect_golden(draw("decoder", {Panel::norms}), "decoder");
}

TEST_F(GoldenSizes, TheWindowOn120000Steps) {
  write_run(temp_.path() + "/long", {.incidents = 2});
  std::vector<SeriesTable> tables = fixture_history();
  for (SeriesTable& table : tables)
    for (std::size_t step = table.rows(); step < 120'000; ++step)
      for (std::size_t c = 0; c < table.columns.size(); ++c) {
        double value = table.values[(step % 60) * table.columns.size() + c];
        if (table.columns[c] == "step") value = static_cast<double>(step);
        if (table.columns[c] == "gate" && step % 41 == 0 && step % 30'000 > 20'000) value = 3;
        if (table.columns[c] == "gate" && step % 2'000 == 0) value = 1;
        table.values.push_back(value);
      }
  write_series(temp_.path() + "/long", tables);
  expect_golden(draw("long", {}), "window");
}

}  // namespace
}  // namespace nanquest::viewer::testing
