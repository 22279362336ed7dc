#include "tests/viewer/damage.h"

#include <hdf5.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "probe/snapshot/reader.h"
#include "probe/snapshot/seal.h"
#include "tests/snapshot/forge.h"

namespace nanquest::viewer::testing {
namespace {

using nanquest::testing::forge;
using nanquest::testing::poke;
using nanquest::testing::replace;

constexpr const char* kTensor = "parameters/head.weight";

void cut(const std::string& path) {
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
}
void empty(const std::string& path) {
  std::filesystem::resize_file(path, 0);
}
void newer(const std::string& path) {
  (void)seal_file(path, 4, 0, {});
}
void text(const std::string& path) {
  std::ofstream(path) << "not a snapshot\n";
}
void unfinished(const std::string& path) {
  forge(path, [](hid_t file) { H5Adelete(file, "complete"); });
}
void loop(const std::string& path) {
  forge(path,
        [](hid_t file) { H5Lcreate_hard(file, "trace", file, "trace/again", H5P_DEFAULT, H5P_DEFAULT); });
}
void outside(const std::string& path) {
  forge(path, [](hid_t file) {
    H5Lcreate_external("/etc/passwd", "/x", file, "parameters/outside", H5P_DEFAULT, H5P_DEFAULT);
  });
}
void bomb(const std::string& path) {
  forge(path, [](hid_t file) { replace(file, kTensor, H5T_STD_U8LE, {hsize_t{1} << 42}, H5P_DEFAULT); });
}
void index(const std::string& path) {
  forge(path, [](hid_t file) { poke(file, "trace/ops/module", 0, 1 << 30); });
}
void culprit(const std::string& path) {
  forge(path, [](hid_t file) { poke(file, "verdict/culprit/op", 0, 1 << 20); });
}

}  // namespace

const std::vector<Damage>& all_damages() {
  static const std::vector<Damage> all = {
      {"newer", "format 4.0, this program reads formats up to 3.x", newer},
      {"cut", "cut", cut},
      {"empty", "empty", empty},
      {"text", "not a nanquest snapshot", text},
      {"unfinished", "never completed", unfinished},
      {"loop", "deeper", loop},
      {"outside", "is a link to somewhere else", outside},
      {"bomb", "claims more bytes than the file holds", bomb},
      {"index", "module 1073741824 of", index},
      {"culprit", "op 1048576 of", culprit}};
  return all;
}

void spoil_tensor(const std::string& snapshot, const std::string& tensor) {
  std::string bytes;
  {
    const Result<SnapshotReader> reader = SnapshotReader::open(snapshot);
    if (!reader) throw std::runtime_error(reader.error().text());
    const Result<TensorData> data = reader->read_range(tensor, 0, 1024);
    if (!data) throw std::runtime_error(data.error().text());
    bytes.assign(reinterpret_cast<const char*>(data->bytes.data()), data->bytes.size());
  }
  std::ifstream in(snapshot, std::ios::binary);
  std::string file((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const std::size_t at = file.find(bytes);
  if (at == std::string::npos) throw std::runtime_error(tensor + " is not stored as it is");
  std::memcpy(file.data() + at + 400, "\x00\x00\xc0\x7f", 4);
  std::ofstream(snapshot, std::ios::binary) << file;
}

}  // namespace nanquest::viewer::testing
