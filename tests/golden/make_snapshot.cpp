// make_golden_snapshot FILE [BESIDE]: writes the golden file of the current format. Run it once per format
// version and per way of writing it (with BESIDE a tensor is in a file of that name in the same folder). The
// result is committed and never written again.
#include <cstdio>

#include "tests/snapshot/rich_doc.h"

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    std::fprintf(stderr, "usage: make_golden_snapshot FILE [BESIDE]\n");
    return 2;
  }
  const nanquest::Status s = nanquest::testing::write_rich(argv[1], argc == 3 ? argv[2] : "");
  if (!s) std::fprintf(stderr, "%s\n", s.error().text().c_str());
  return s.ok() ? 0 : 3;
}
