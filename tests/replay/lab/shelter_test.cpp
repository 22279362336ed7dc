// A crash in what is tried ends that process, and not the diagnosis.
#include "replay/lab/shelter.h"

#include <gtest/gtest.h>

#include <csignal>
#include <string>

namespace nanquest {
namespace {

/// 5 if it gets this.
std::function<int(const std::string&)> expecting(const std::string& crash) {
  return [crash](const std::string& told) { return told == crash ? 5 : 6; };
}

TEST(Shelter, PassesOnWhatTheWorkEndsWith) {
  for (const int code : {0, 1, 130})
    EXPECT_EQ(sheltered([=](const Doing&) { return code; }, expecting("")), code);
}

TEST(Shelter, ACrashIsToldWithWhatWasBeingDone) {
  const auto crashing = [](int signal) {
    return [signal](const Doing& doing) {
      doing("one thing");
      doing("another");
      std::signal(signal, SIG_DFL);
      std::raise(signal);
      return 0;
    };
  };
  EXPECT_EQ(sheltered(crashing(SIGSEGV), expecting("Segmentation fault while: another")), 5);
  EXPECT_EQ(sheltered(crashing(SIGABRT), expecting("Aborted while: another")), 5);
  EXPECT_EQ(sheltered(
                [](const Doing& doing) {
                  doing(std::string(1000, 'x'));
                  std::signal(SIGILL, SIG_DFL);
                  std::raise(SIGILL);
                  return 0;
                },
                expecting("Illegal instruction while: " + std::string(200, 'x'))),
            5);
}

TEST(Shelter, ASecondCrashIsToldApartFromAnEndFromOutside) {
  const auto crash = [] {
    std::signal(SIGSEGV, SIG_DFL);
    std::raise(SIGSEGV);
    return 0;
  };
  EXPECT_TRUE(is_crash(
      sheltered([&](const Doing&) { return crash(); }, [&](const std::string&) { return crash(); })));
  for (const int code : {0, 1, 130, 128 + SIGKILL, 128 + SIGTERM}) EXPECT_FALSE(is_crash(code)) << code;
}

TEST(Shelter, WhoIsEndedFromOutsideIsNotBegunAgain) {
  EXPECT_EQ(sheltered(
                [](const Doing&) {
                  std::raise(SIGKILL);
                  return 0;
                },
                expecting("")),
            128 + SIGKILL);
}

}  // namespace
}  // namespace nanquest
