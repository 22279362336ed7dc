/// The run of a test, and what its panels say of it.
#pragma once

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

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

}  // namespace nanquest::viewer::testing
