// Damages a snapshot in place: viewer_make_damage FILE KIND; without arguments it lists the kinds with their
// words.
#include <cstdio>
#include <cstring>

#include "tests/viewer/damage.h"

int main(int argc, char** argv) {
  for (const auto& damage : nanquest::viewer::testing::all_damages()) {
    if (argc < 3) std::printf("%s|%s\n", damage.name, damage.says);
    if (argc >= 3 && std::strcmp(argv[2], damage.name) == 0) return damage.make(argv[1]), 0;
  }
  return argc < 3 ? 0 : 2;
}
