// Damaged and hostile snapshots through viewer/model: alone they are refused, in a run they keep nothing else
// from being shown.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "probe/snapshot/reader.h"
#include "tests/snapshot/forge.h"
#include "tests/viewer/damage.h"
#include "tests/viewer/fixture.h"
#include "viewer/model/session.h"
#include "viewer/model/verdict_page.h"
#include "viewer/panels/registry.h"

namespace nanquest::viewer {
namespace {

namespace fs = std::filesystem;
using testing::all_damages;
using testing::Damage;
using testing::TempDir;

class Damaged : public ::testing::Test {
 protected:
  /// A run with incidents at steps 90 (whole) and 131.
  std::string fresh(bool replayed = true) {
    fs::remove_all(dir());
    testing::FixtureOptions options;
    options.replayed = replayed;
    options.incidents = 2;
    return testing::write_run(dir(), options);
  }
  std::string dir() const { return temp_.path() + "/story"; }
  static void look_at_everything(Session& session) {
    for (const PanelInfo& panel : all_panels()) {
      EXPECT_FALSE(panel_text(session, panel.panel).empty()) << panel.name;
      (void)panel.csv(session);
    }
    for (const StoredTensor& tensor :
         session.incident() ? session.incident()->tensors : std::vector<StoredTensor>{}) {
      session.select_tensor(tensor.path);
      (void)session.tensor_slice(0);
    }
  }
  TempDir temp_;
};

TEST_F(Damaged, AloneItIsRefusedInOneLine) {
  for (const Damage& damage : all_damages()) {
    SCOPED_TRACE(damage.name);
    const std::string path = fresh(/*replayed=*/false);
    damage.make(path);
    const Result<Session> session = Session::open(path);
    ASSERT_FALSE(session);
    EXPECT_EQ(exit_code(session.error().code), 3);
    const std::string text = session.error().text();
    EXPECT_NE(text.find(path), std::string::npos) << text;
    EXPECT_NE(text.find(damage.says), std::string::npos) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    EXPECT_FALSE(session.error().hint.empty()) << text;
  }
}

TEST_F(Damaged, InARunTheOthersAreShown) {
  for (const Damage& damage : all_damages()) {
    SCOPED_TRACE(damage.name);
    damage.make(fresh(/*replayed=*/false));
    Result<Session> session = Session::open(dir());
    ASSERT_TRUE(session) << session.error().text();
    ASSERT_NE(session->incident(), nullptr);
    EXPECT_EQ(session->incident()->doc.step, 90);
    EXPECT_EQ(session->incident_error(), "");
    ASSERT_EQ(session->complaints().size(), 1u);
    EXPECT_NE(session->complaints()[0].find(damage.says), std::string::npos) << session->complaints()[0];
    EXPECT_NE(panel_text(*session, Panel::runs).find("can't be read"), std::string::npos);
    EXPECT_FALSE(session->history().empty());
    look_at_everything(*session);
    session->select_step(131);
    EXPECT_EQ(session->incident(), nullptr);
    EXPECT_NE(verdict_page(*session).headline.find(damage.says), std::string::npos);
    look_at_everything(*session);
    session->select_step(90);
    EXPECT_NE(session->incident(), nullptr);
  }
}

TEST_F(Damaged, SeriesAndManifestToo) {
  fresh();
  fs::resize_file(series_path(dir(), 0), 900);
  std::ofstream(manifest_path(dir())) << "{";
  Result<Session> session = Session::open(dir());
  ASSERT_TRUE(session) << session.error().text();
  EXPECT_EQ(session->complaints().size(), 2u);
  EXPECT_FALSE(session->history().empty()) << "the snapshot's own";
  look_at_everything(*session);
}

/// Messages of libraries, which don't say what to do.
TEST_F(Damaged, IsSaidInPlainWordsAndAtOnce) {
  fresh();
  const std::string series = series_path(dir(), 0), whole = temp_.path() + "/whole.h5";
  fs::copy_file(series, whole);
  const auto bytes = fs::file_size(whole);
  std::size_t complaints = 0;
  const auto check = [&] {
    const Result<Session> session = Session::open(dir());
    ASSERT_TRUE(session) << session.error().text();
    for (std::string complaint : session->complaints()) {
      ++complaints;
      if (const auto at = complaint.find(dir()); at != std::string::npos) complaint.erase(at, dir().size());
      for (const char* word : {"exception", "->", "eof", "sblock", "H5", "parse_error", "::", "unable to"})
        EXPECT_EQ(complaint.find(word), std::string::npos) << complaint;
    }
  };
  for (const auto cut : {std::uintmax_t{0}, std::uintmax_t{10}, std::uintmax_t{900}, bytes / 2, bytes - 1}) {
    fs::copy_file(whole, series, fs::copy_options::overwrite_existing);
    fs::resize_file(series, cut);
    check();
  }
  for (std::uintmax_t at = 0; at < std::min<std::uintmax_t>(bytes, 4000); at += 37) {
    fs::copy_file(whole, series, fs::copy_options::overwrite_existing);
    std::fstream file(series, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(at));
    file.put('\x5a');
    file.close();
    check();
  }
  fs::copy_file(whole, series, fs::copy_options::overwrite_existing);
  for (const char* text : {"{", "", "[]", "{\"format\": 3}", "\xff\xfe", "{\"format\":\"nanquest.run\"}",
                           "{\"format\":\"nanquest.run\",\"format_version\":\"1.0\",\"incidents\":[{}]}",
                           "{\"format\":\"nanquest.run\",\"format_version\":\"1.0\",\"rank\":\"x\"}"}) {
    std::ofstream(manifest_path(dir())) << text;
    const std::size_t before = complaints;
    check();
    EXPECT_GT(complaints, before) << text;
  }
  EXPECT_GT(complaints, 20u);
}

/// Bytes of large tensors are not sealed: a flipped one is found when they are read.
TEST_F(Damaged, ATensorWithAFlippedBitIsNotShown) {
  const std::string path = fresh();
  Session session = *Session::open(path);
  session.select_tensor("parameters/head.weight");
  ASSERT_EQ(session.tensor_detail()->scan.non_finite(), 0u);
  testing::spoil_tensor(path, "parameters/head.weight");
  Result<Session> again = Session::open(path);
  ASSERT_TRUE(again) << again.error().text();
  again->select_tensor("parameters/head.weight");
  EXPECT_EQ(again->tensor_detail(), nullptr);
  EXPECT_NE(panel_text(*again, Panel::tensor).find("damaged"), std::string::npos);
  again->select_tensor("parameters/blocks.0.mlp.up.weight");
  EXPECT_NE(again->tensor_detail(), nullptr) << "the others are";
}

/// Every number of every table, made absurd: the reader refuses it, or everything can be shown.
TEST_F(Damaged, AbsurdNumbersAreRefusedOrShown) {
  const std::string path = fresh();
  const std::string copy = temp_.path() + "/copy.h5";
  fs::copy_file(path, copy);
  const char* columns[] = {
      "trace/ops/name",        "trace/ops/module",    "trace/ops/phase",     "trace/ops/forward_op",
      "trace/ops/first_arg",   "trace/ops/arg_count", "trace/ops/stack",     "trace/ops/first_output",
      "trace/tensors/slot",    "trace/tensors/stats", "trace/tensors/dtype", "trace/tensors/sizes",
      "trace/tensors/strides", "trace/args/kind",     "trace/args/tensor",   "trace/args/integer",
      "trace/slots/origin",    "trace/loss",          "trace/gate",          "trace/step",
      "stats/count",           "stats/nan",           "stats/amax",          "verdict/culprit/op",
      "verdict/culprit/count", "strings/offsets"};
  int shown = 0, tried = 0;
  for (const char* column : columns)
    for (const long long value : {-1LL, 7LL, 1LL << 31, 1LL << 62}) {
      SCOPED_TRACE(std::string(column) + " = " + std::to_string(value));
      fs::copy_file(copy, path, fs::copy_options::overwrite_existing);
      bool there = false;
      nanquest::testing::forge(path, [&](hid_t file) {
        H5E_BEGIN_TRY {
          there = H5Oexists_by_name(file, column, H5P_DEFAULT) > 0;
        }
        H5E_END_TRY
        if (there && H5Oexists_by_name(file, column, H5P_DEFAULT) > 0)
          nanquest::testing::poke(file, column, 0, value);
      });
      tried += there;
      Result<Session> session = Session::open(path);
      if (!session) {
        EXPECT_EQ(exit_code(session.error().code), 3) << session.error().text();
        continue;
      }
      look_at_everything(*session);
      ++shown;
    }
  EXPECT_GT(tried, 60);
  EXPECT_GT(shown, 5);
}

}  // namespace
}  // namespace nanquest::viewer
