/// The run of a test, and the texts of its panels.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "tests/viewer/fixture.h"
#include "viewer/model/session.h"

namespace nanquest::viewer::testing {

/// A run directory that goes with the test; the test fills it.
class Story : public ::testing::Test {
 protected:
  std::string dir() const { return temp_.path() + "/story"; }
  /// A run or a file, which must open.
  Session open(const std::string& path) {
    Result<Session> session = Session::open(path);
    if (!session) throw std::runtime_error(session.error().text());
    return std::move(session).value();
  }
  static bool says(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }
  TempDir temp_;
};

/// The fixture run with two incidents, opened.
class OpenStory : public Story {
 protected:
  void SetUp() override {
    snapshot_ = write_run(dir(), {.incidents = 2});
    session_.emplace(open(dir()));
  }
  Session& session() { return *session_; }
  std::string snapshot_;  ///< of step 131
  std::optional<Session> session_;
};

}  // namespace nanquest::viewer::testing
