// Reading on a thread of its own: what a person waits for comes, what they gave up does not, and nothing
// changes while it is looked at. The same program is built with ThreadSanitizer (viewer_loader_tsan_test).
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "probe/snapshot/run_dir.h"
#include "tests/viewer/story.h"
#include "viewer/model/loader.h"

namespace nanquest::viewer {
namespace {

using namespace std::chrono_literals;

class Reading : public testing::OpenStory {
 protected:
  /// Until the errand is done, or a minute is over.
  bool arrives(Loader& loader) { return loader.wait(60s) && loader.collect(session()); }
  static Loader::Errand step(double step, std::function<void()> done = {}) {
    return {"step",
            [step](Session& s) {
              s.select_step(step);
              return true;
            },
            std::move(done), true};
  }
  /// How many open files of this process have that path.
  static int handles(const std::string& path) {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code ec;
      if (std::filesystem::read_symlink(entry.path(), ec) == std::filesystem::canonical(path)) ++count;
    }
    return count;
  }
};

TEST_F(Reading, TakesItsPlaceWhenItIsCollected) {
  Loader loader;
  const std::thread::id here = std::this_thread::get_id();
  std::thread::id reads, tells;
  loader.ask(session(), {"step 90",
                         [&](Session& s) {
                           reads = std::this_thread::get_id();
                           s.select_step(90);
                           return true;
                         },
                         [&] { tells = std::this_thread::get_id(); }, true});
  ASSERT_TRUE(loader.wait(60s));
  EXPECT_EQ(session().incident()->doc.step, 131) << "before it was collected";
  ASSERT_TRUE(loader.collect(session()));
  EXPECT_EQ(session().incident()->doc.step, 90);
  EXPECT_EQ(session().selection().step, 90);
  EXPECT_NE(reads, here);
  EXPECT_EQ(tells, here);
  EXPECT_FALSE(loader.busy());
  EXPECT_FALSE(loader.collect(session()));
}

/// The same as reading it here: op, layer, tensor, numbers.
TEST_F(Reading, GivesWhatReadingHereGives) {
  Loader loader;
  Session here = session();
  for (const double at : {90.0, 131.0, 90.0}) {
    here.select_step(at);
    loader.ask(session(), step(at));
    ASSERT_TRUE(arrives(loader));
    EXPECT_EQ(session().selection(), here.selection());
    EXPECT_EQ(session().incident()->doc.gate, here.incident()->doc.gate);
    EXPECT_EQ(session().replay_command(), here.replay_command());
  }
  const auto load = [](Session& s) { return s.tensor_slice(0) != nullptr; };
  EXPECT_TRUE(session().tensor_waits(0));
  EXPECT_EQ(session().read_detail(), nullptr);
  loader.ask(session(), {"tensor", load});
  ASSERT_TRUE(arrives(loader));
  EXPECT_FALSE(session().tensor_waits(0));
  ASSERT_NE(session().read_detail(), nullptr);
  EXPECT_EQ(session().read_detail()->scan.amax, here.tensor_detail()->scan.amax);
  EXPECT_EQ(session().read_slice(0)->cells.size(), here.tensor_slice(0)->cells.size());
}

TEST_F(Reading, TheNewestWishReplacesTheOneBefore) {
  Loader loader;
  std::atomic<bool> began{false}, ended{false};
  bool first_done = false;
  const auto slow = [&](Session& s) {
    began = true;
    while (!s.progress()->stopped()) std::this_thread::sleep_for(1ms);
    ended = true;
    return true;
  };
  loader.ask(session(), {"for ever", slow, [&] { first_done = true; }});
  while (!began) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(loader.doing(), "reading for ever, 0 %");
  loader.ask(session(), step(90));
  ASSERT_TRUE(arrives(loader));
  EXPECT_TRUE(ended);
  EXPECT_FALSE(first_done);
  EXPECT_EQ(session().incident()->doc.step, 90);
}

TEST_F(Reading, WhatIsStoppedChangesNothing) {
  Loader loader;
  std::atomic<bool> began{false};
  const auto slow = [&](Session& s) {
    began = true;
    while (!s.progress()->stopped()) std::this_thread::sleep_for(1ms);
    s.select_step(90);
    return true;
  };
  EXPECT_FALSE(loader.cancel()) << "nobody waits for anything";
  loader.ask(session(), {"step 90", slow, [] { ADD_FAILURE() << "it was stopped"; }, true});
  while (!began) std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(loader.cancel());
  EXPECT_EQ(loader.stops(), 1u);
  EXPECT_EQ(loader.doing(), "");
  EXPECT_FALSE(loader.wait(50ms));
  EXPECT_FALSE(loader.collect(session()));
  EXPECT_EQ(session().incident()->doc.step, 131);
  loader.ask(session(), step(90));
  EXPECT_TRUE(arrives(loader)) << "it goes on reading after that";
}

TEST_F(Reading, OpeningARunEndsEarlyWhenItIsStopped) {
  Progress progress;
  progress.stop();
  const Result<Session> nothing = Session::open(dir(), &progress);
  ASSERT_TRUE(nothing);
  EXPECT_EQ(nothing->incident(), nullptr) << "nothing was opened after the stop";
}

/// What was chosen while news were read stays chosen; new rows come nevertheless.
TEST_F(Reading, NewsKeepWhatWasSelectedInTheMeantime) {
  Loader loader;
  testing::write_series(dir(), testing::fixture_history(200));
  loader.ask(session(), {"news", [](Session& s) { return s.poll(); }, {}, false, true});
  session().select_layer("head");
  session().select_statistic(Statistic::weight);
  session().select_op(12);
  ASSERT_TRUE(arrives(loader));
  EXPECT_EQ(session().history().rows(), 200u);
  EXPECT_EQ(session().selection().layer.empty(), false);
  EXPECT_EQ(session().selection().op, 12);
  EXPECT_EQ(session().selection().statistic, Statistic::weight);
}

TEST_F(Reading, AnotherListOfIncidentsMovesNoSelection) {
  Loader loader;
  ASSERT_EQ(session().selection().incident, 1);
  std::filesystem::remove(
      incident_path(dir(), 90, 0));  // the manifest still knows of it, later in the list or not
  loader.ask(session(), {"it again", [](Session& s) { return s.reload().ok(); }});
  session().select_op(12);
  ASSERT_TRUE(arrives(loader));
  EXPECT_EQ(session().incident()->doc.step, 131);
  EXPECT_EQ(session().selection().op, 12);
}

TEST_F(Reading, FollowingGivesWay) {
  Loader loader;
  std::atomic<bool> began{false};
  const auto slow = [&](Session& s) {
    began = true;
    while (!s.progress()->stopped()) std::this_thread::sleep_for(1ms);
    return true;
  };
  const auto wrong = [](Session&) {
    ADD_FAILURE() << "a person waits for something else";
    return true;
  };
  loader.ask(session(), {"for ever", slow});
  while (!began) std::this_thread::sleep_for(1ms);
  loader.ask(session(), {"news", wrong, {}, false, true});
  EXPECT_EQ(loader.doing(), "reading for ever, 0 %");
  loader.cancel();
  loader.ask(session(), {"news", [](Session& s) { return s.poll(); }, {}, false, true});
  EXPECT_EQ(loader.doing(), "") << "nobody waits for news";
  EXPECT_FALSE(loader.cancel());
  ASSERT_TRUE(loader.wait(60s));
  EXPECT_FALSE(loader.collect(session())) << "there were none";
  EXPECT_FALSE(loader.busy());
}

TEST_F(Reading, AFailureIsSaidAndNothingIsLost) {
  Loader loader;
  loader.ask(session(), {"too much", [](Session&) -> bool { throw std::runtime_error("no memory"); }});
  ASSERT_TRUE(loader.wait(60s));
  EXPECT_FALSE(loader.collect(session()));
  EXPECT_EQ(loader.trouble(), "no memory");
  EXPECT_EQ(session().incident()->doc.step, 131);
  loader.ask(session(), step(90));
  EXPECT_TRUE(arrives(loader));
  EXPECT_EQ(loader.trouble(), "");
}

/// The thread that reads closes: an incident's file is open as long as it is shown, and not much longer.
TEST_F(Reading, AFileIsClosedOnceNobodyShowsIt) {
  Loader loader;
  ASSERT_EQ(handles(snapshot_), handles(session().held_incident()->reader.path()));
  const int open = handles(snapshot_);
  ASSERT_GT(open, 0);
  loader.ask(session(), step(90));
  ASSERT_TRUE(arrives(loader));
  EXPECT_EQ(handles(snapshot_), open) << "it was closed by the thread that draws";
  loader.ask(session(), {"news", [](Session& s) { return s.poll(); }});
  ASSERT_TRUE(loader.wait(60s));
  loader.collect(session());
  for (int i = 0; i < 60'000 && handles(snapshot_) > 0; ++i) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(handles(snapshot_), 0);
}

TEST_F(Reading, TellsHowFarItIs) {
  std::vector<SeriesTable> tables = {{"scalars", {"step"}, {}}, {"grad_norm", {}, {}}};
  for (int c = 0; c < 40; ++c) tables[1].columns.push_back("layer" + std::to_string(c));
  for (int r = 0; r < 4000; ++r) {
    tables[0].values.push_back(r);
    for (int c = 0; c < 40; ++c) tables[1].values.push_back(r * c);
  }
  testing::write_series(dir(), tables);
  Progress progress;
  ASSERT_TRUE(Session::open(dir(), &progress));
  EXPECT_EQ(progress.share(), 1) << "all that was announced was done";
  Progress half;
  half.expect(200);
  half.advance(50);
  EXPECT_EQ(half.share(), 0.25);
  half.advance(500);
  EXPECT_EQ(half.share(), 1);
}

TEST_F(Reading, TellsItWhileItReads) {
  Loader loader;
  loader.ask(session(), {"all", [](Session& s) {
                           s.progress()->expect(8);
                           s.progress()->advance(3);
                           return true;
                         }});
  ASSERT_TRUE(loader.wait(60s));
  EXPECT_EQ(loader.doing(), "reading all, 37 %");
}

/// Like a user who clicks while a run is written. Under ThreadSanitizer this shows that there is no race.
TEST_F(Reading, ManyWishesEndWithTheLast) {
  Loader loader;
  for (int i = 0; i < 60; ++i) {
    if (i % 7 == 3) testing::write_series(dir(), testing::fixture_history(132 + i));
    loader.ask(session(),
               i % 3 == 2 ? Loader::Errand{"tensor", [](Session& s) { return s.tensor_slice(0) != nullptr; }}
                          : step(i % 2 ? 90 : 131));
    if (i % 5 == 1) loader.cancel();
    if (i % 4 == 0) loader.wait(std::chrono::milliseconds(i));
    loader.collect(session());
    if (session().incident() != nullptr) session().select_op(i % 20);
    ASSERT_NE(session().incident(), nullptr);
    EXPECT_GT(session().history().rows(), 100u);
  }
  loader.ask(session(), step(90));
  ASSERT_TRUE(arrives(loader));
  EXPECT_EQ(session().incident()->doc.step, 90);
}

TEST_F(Reading, NothingIsShownOfWhatWasNotRead) {
  Session nothing = Session::nothing(dir());
  EXPECT_TRUE(nothing.is_nothing());
  EXPECT_EQ(nothing.title(), "story");
  EXPECT_TRUE(nothing.history().empty());
  EXPECT_EQ(nothing.incident(), nullptr);
  EXPECT_FALSE(nothing.poll());
  EXPECT_EQ(Session::nothing(dir(), "no such file").nothing_because(), "no such file");
  EXPECT_FALSE(session().is_nothing());
}

}  // namespace
}  // namespace nanquest::viewer
