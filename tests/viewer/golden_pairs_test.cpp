// Panel × theme × size × kind of run against golden pictures: every pair of two of these is drawn at least
// once (but for panels that show the same of two kinds of run).
#include <filesystem>
#include <set>
#include <utility>

#include "tests/viewer/damage.h"
#include "tests/viewer/fixture.h"
#include "tests/viewer/golden.h"
#include "tests/viewer/watched.h"
#include "viewer/app/offscreen.h"

namespace nanquest::viewer::testing {
namespace {

namespace fs = std::filesystem;

enum class Kind : std::uint8_t { story, attached, healthy, long_run, damaged };
constexpr const char* kKinds[] = {"story", "attached", "healthy", "long", "damaged"};

struct Drawn {
  Panel panel;
  Kind kind;
  Theme theme;
  bool large;  ///< 2560 × 1440 at 200 % instead of 1280 × 720
  std::string name() const { return std::string(panel_name(panel)) + "_" + kKinds[static_cast<int>(kind)]; }
};

/// What a kind of run has nothing of its own to show in.
bool as_elsewhere(Panel panel, Kind kind) {
  switch (kind) {
    case Kind::story:
      return false;
    case Kind::attached:
      return panel == Panel::runs;
    case Kind::healthy:
      return panel == Panel::batch || panel == Panel::tensor || panel == Panel::ranks;
    case Kind::long_run:
      return panel == Panel::trace || panel == Panel::tensor;
    case Kind::damaged:
      return panel == Panel::batch || panel == Panel::ranks;
  }
  return false;
}

std::vector<Drawn> all_drawn() {
  std::vector<Drawn> drawn;
  for (const PanelInfo& info : all_panels()) {
    int turn = static_cast<int>(info.panel);  // of themes and sizes
    for (int kind = 0; kind < static_cast<int>(std::size(kKinds)); ++kind)
      if (!as_elsewhere(info.panel, static_cast<Kind>(kind))) {
        drawn.push_back({info.panel, static_cast<Kind>(kind), kThemes[turn % 3], turn / 2 % 2 == 1});
        ++turn;
      }
  }
  return drawn;
}

/// The story's first steps, and then 100,000 healthy ones like its first ones.
std::vector<SeriesTable> long_history() {
  constexpr std::size_t kSteps = 100'000, kHealthy = 60;
  std::vector<SeriesTable> tables = fixture_history();
  for (SeriesTable& table : tables) {
    const std::size_t width = table.columns.size();
    for (std::size_t step = table.rows(); step < kSteps; ++step)
      for (std::size_t c = 0; c < width; ++c) {
        const double value = table.values[(step % kHealthy) * width + c];
        table.values.push_back(table.columns[c] == "step" ? static_cast<double>(step) : value);
      }
  }
  return tables;
}

void make(Kind kind, const std::string& run) {
  const std::string snapshot = write_run(run, {.watched = kind != Kind::attached, .incidents = 2});
  if (kind == Kind::attached) watch(run);
  if (kind == Kind::long_run) write_series(run, long_history());
  if (kind == Kind::damaged) all_damages().front().make(snapshot);
  if (kind != Kind::healthy) return;
  fs::remove_all(run);
  fs::create_directories(run);
  write_series(run, with_costs(fixture_history(80)));
}

Image draw(const Drawn& what) {
  const TempDir temp;
  make(what.kind, temp.path() + "/run");
  if (what.panel == Panel::ranks) write_ranks(temp.path() + "/run", 64);
  const fs::path before = fs::current_path();
  fs::current_path(temp.path());
  Result<Session> session = Session::open("run");
  const Result<Image> image = !session     ? session.error()
                              : what.large ? take_picture(*session, {what.panel}, 2560, 1440, 2, what.theme)
                                           : take_picture(*session, {what.panel}, 1280, 720, 1, what.theme);
  fs::current_path(before);
  EXPECT_TRUE(image) << image.error().text();
  return image ? *image : Image{};
}

class GoldenPicturePair : public ::testing::TestWithParam<Drawn> {};

TEST_P(GoldenPicturePair, IsDrawn) {
  const Drawn& what = GetParam();
  const Image image = draw(what);
  EXPECT_TRUE(is_golden(what.large ? halved(image) : image,
                        NANQUEST_GOLDEN_PICTURES "/pairs/" + what.name() + ".png",
                        NANQUEST_WRITTEN_PICTURES "/pairs"));
}

INSTANTIATE_TEST_SUITE_P(Runs, GoldenPicturePair, ::testing::ValuesIn(all_drawn()),
                         [](const auto& p) { return p.param.name(); });

TEST(GoldenPictures, AreOfEveryPair) {
  std::set<std::pair<int, int>> panel_theme, panel_size, kind_theme, kind_size, theme_size, panel_kind;
  for (const Drawn& d : all_drawn()) {
    const int panel = static_cast<int>(d.panel), kind = static_cast<int>(d.kind);
    const int theme = static_cast<int>(d.theme);
    panel_theme.emplace(panel, theme);
    panel_size.emplace(panel, d.large);
    panel_kind.emplace(panel, kind);
    kind_theme.emplace(kind, theme);
    kind_size.emplace(kind, d.large);
    theme_size.emplace(theme, d.large);
  }
  const std::size_t panels = all_panels().size(), kinds = std::size(kKinds), themes = std::size(kThemes);
  EXPECT_EQ(panel_theme.size(), panels * themes);
  EXPECT_EQ(panel_size.size(), panels * 2);
  EXPECT_EQ(panel_kind.size(), panels * kinds - 8);
  EXPECT_EQ(kind_theme.size(), kinds * themes);
  EXPECT_EQ(kind_size.size(), kinds * 2);
  EXPECT_EQ(theme_size.size(), themes * 2);
  EXPECT_LE(all_drawn().size() + panels, 40U) << "of the whole folder, with one of each panel";
}

}  // namespace
}  // namespace nanquest::viewer::testing
