// export_rich DIR: writes DIR/snapshot.h5 and, beside it, the bytes of each tensor for programs in other
// languages.
#include <cstdio>
#include <fstream>

#include "probe/snapshot/atomic_file.h"
#include "tests/snapshot/rich_doc.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string dir = argv[1];
  if (const nanquest::Status s = nanquest::testing::write_rich(dir + "/snapshot.h5"); !s) {
    std::fprintf(stderr, "%s\n", s.error().text().c_str());
    return 3;
  }
  std::ofstream index(dir + "/index.txt");
  int i = 0;
  for (const auto& [path, t] : nanquest::testing::rich_tensors()) {
    const std::string name = std::to_string(i++) + ".bin";
    index << path << '\t' << dtype_name(t.dtype) << '\t';
    for (const std::int64_t n : t.shape) index << n << ',';
    index << '\t' << name << '\n';
    const std::string_view bytes(reinterpret_cast<const char*>(t.bytes.data()), t.bytes.size());
    if (!nanquest::write_file_atomically(dir + "/" + name, bytes)) return 3;
  }
  return index.good() ? 0 : 3;
}
