// The window on a folder of runs: a click opens one, Alt+Up comes back, the list is sorted and searched.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/viewer/driver.h"
#include "tests/viewer/story.h"

namespace nanquest::viewer {
namespace {

using testing::Driver;

class FolderWindow : public testing::Story {
 protected:
  void SetUp() override {
    testing::write_run(folder() + "/run-1");
    testing::write_run(folder() + "/run-2", {.replayed = false});
    testing::write_run(folder() + "/run-12", {.incidents = 2});
  }
  std::string folder() const { return temp_.path() + "/night"; }
  /// Clicks the title of a column.
  static void sort_by(Driver& driver, const char* title) {
    ImPool<ImGuiTable>& all = ImGui::GetCurrentContext()->Tables;
    for (int i = 0; i < all.GetBufSize(); ++i) {
      ImGuiTable* table = all.TryGetMapData(i);
      for (int c = 0; table != nullptr && c < table->ColumnsCount; ++c)
        if (std::string(ImGui::TableGetColumnName(table, c)) == title)
          return driver.click_at({(table->Columns[c].MinX + table->Columns[c].MaxX) / 2,
                                  table->OuterRect.Min.y + ImGui::GetTextLineHeight() / 2});
    }
    FAIL() << "no column " << title;
  }
};

TEST_F(FolderWindow, AClickOpensARunAndAltUpComesBack) {
  Session session = open(folder());
  Driver driver(session, Panel::all);
  driver.frame(5);
  ASSERT_TRUE(driver.sees("run-2"));
  EXPECT_FALSE(Driver::shows("Verdict"));
  ASSERT_TRUE(driver.click("run-2"));
  driver.frame(5);
  EXPECT_EQ(session.path(), folder() + "/run-2");
  EXPECT_TRUE(Driver::shows("Verdict") && Driver::shows("Norms"));
  driver.press(ImGuiKey_UpArrow, ImGuiMod_Alt);
  driver.frame(3);
  ASSERT_NE(session.folder(), nullptr);
  EXPECT_EQ(session.folder()->runs.size(), 3u);
  ASSERT_TRUE(driver.click("run-12"));
  driver.frame(5);
  EXPECT_EQ(session.path(), folder() + "/run-12");
  EXPECT_TRUE(Driver::shows("Verdict") && Driver::shows("Norms")) << "where they were";
  EXPECT_EQ(driver.bad_vertices(), 0);
}

TEST_F(FolderWindow, TheRunsThatAreShownTogetherAreRememberedWithTheFolder) {
  const OwnFolders folders{temp_.path() + "/config", temp_.path() + "/state"};
  const std::vector<std::string> chosen = {folder() + "/run-12", folder() + "/run-1"};
  {
    Session session = open(folder());
    Driver driver(session, Panel::all);
    driver.ui().state().options.folders = folders;
    driver.frame(5);
    driver.ui().folder().choose(*session.folder(), {"run-12", "gone", "run-1"});
    driver.frame(3);
    ASSERT_TRUE(driver.click("Show together"));
    driver.frame(5);
    ASSERT_EQ(session.path(), chosen[0]);
    ASSERT_EQ(session.others().size(), 1u);
  }
  // Another window, on another run first.
  Session session = open(folder() + "/run-2");
  Driver driver(session, Panel::all);
  driver.ui().state().options.folders = folders;
  driver.frame(5);
  driver.press(ImGuiKey_UpArrow, ImGuiMod_Alt);
  driver.frame(4);
  ASSERT_NE(session.folder(), nullptr);
  EXPECT_EQ(driver.ui().folder().chosen(), chosen);
  ASSERT_TRUE(driver.click("Choose none"));
  driver.frame(2);
  ASSERT_TRUE(driver.click("run-2"));
  driver.frame(4);
  driver.press(ImGuiKey_UpArrow, ImGuiMod_Alt);
  driver.frame(4);
  EXPECT_TRUE(driver.ui().folder().chosen().empty()) << "none is a choice too";
}

TEST_F(FolderWindow, TitlesSortAndWordsSearch) {
  Session session = open(folder());
  Driver driver(session, Panel::all);
  driver.frame(5);
  const auto shown = [&] {
    std::vector<std::string> names;
    for (const std::size_t row : driver.ui().folder().rows())
      names.push_back(session.folder()->runs[row].name);
    return names;
  };
  sort_by(driver, "Run");
  EXPECT_EQ(shown(), (std::vector<std::string>{"run-1", "run-2", "run-12"}));
  sort_by(driver, "Run");
  EXPECT_EQ(shown(), (std::vector<std::string>{"run-12", "run-2", "run-1"}));
  driver.press(ImGuiKey_F, ImGuiMod_Ctrl);
  driver.type("not replayed");
  EXPECT_EQ(shown(), (std::vector<std::string>{"run-2"}));
  driver.press(ImGuiKey_Enter);
  driver.frame(5);
  EXPECT_EQ(session.path(), folder() + "/run-2");
}

}  // namespace
}  // namespace nanquest::viewer
