// Writes the fixture run, for tests of the program and for looking at pictures:
// viewer_make_run DIR [unreplayed | ranks]
#include <cstdio>
#include <exception>
#include <string>

#include "tests/viewer/fixture.h"

int main(int argc, char** argv) {
  if (argc < 2) return std::fprintf(stderr, "usage: viewer_make_run DIR [unreplayed | ranks]\n"), 2;
  nanquest::viewer::testing::FixtureOptions options;
  options.incidents = 2;
  const std::string how = argc < 3 ? "" : argv[2];
  options.replayed = how != "unreplayed";
  try {
    std::printf("%s\n", nanquest::viewer::testing::write_run(argv[1], options).c_str());
    if (how == "ranks") nanquest::viewer::testing::write_ranks(argv[1], 16);
  } catch (const std::exception& error) {
    return std::fprintf(stderr, "viewer_make_run: %s\n", error.what()), 70;
  }
  return 0;
}
