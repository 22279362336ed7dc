// make_golden_snapshot FILE: writes the golden file of the present format. Run once per format version, and
// per way of writing it; the result is committed and never written again.
#include <cstdio>

#include "tests/snapshot/rich_doc.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_golden_snapshot FILE\n");
    return 2;
  }
  const nanquest::Status s = nanquest::testing::write_rich(argv[1]);
  if (!s) std::fprintf(stderr, "%s\n", s.error().text().c_str());
  return s.ok() ? 0 : 3;
}
