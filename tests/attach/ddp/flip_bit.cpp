// flip_bit IN OUT PATH ELEMENT BIT: a snapshot, sound in every checksum, in which one bit of one stored
// tensor is another.
#include <cstdio>
#include <cstdlib>

#include "probe/snapshot/reader.h"
#include "probe/snapshot/writer.h"

int main(int argc, char** argv) {
  using namespace nanquest;
  if (argc != 6) return 2;
  const auto fail = [](const Error& error) {
    std::fprintf(stderr, "flip_bit: %s\n", error.text().c_str());
    return 3;
  };
  const auto from = SnapshotReader::open(argv[1]);
  if (!from) return fail(from.error());
  const auto tensors = from->tensors();
  if (!tensors) return fail(tensors.error());
  auto writer = SnapshotWriter::create(argv[2]);
  if (!writer) return fail(writer.error());
  bool flipped = false;
  for (const TensorInfo& about : *tensors) {
    auto tensor = from->read_tensor(about.path);
    if (!tensor) return fail(tensor.error());
    if (about.path == argv[3]) {
      std::size_t elements = 1;
      for (const std::int64_t size : tensor->shape) elements *= static_cast<std::size_t>(size);
      const std::size_t width = tensor->bytes.size() / (elements ? elements : 1);
      const auto bit = std::strtoul(argv[5], nullptr, 10);
      const std::size_t byte = std::strtoul(argv[4], nullptr, 10) * width + bit / 8;
      if (byte >= tensor->bytes.size()) return 2;
      tensor->bytes[byte] ^= static_cast<std::byte>(1u << (bit % 8));
      flipped = true;
    }
    if (const Status written =
            writer->write_tensor(about.path, {tensor->dtype, tensor->shape, tensor->bytes.data()});
        !written)
      return fail(written.error());
  }
  if (!flipped) return fail({ErrorCode::usage, std::string(argv[3]) + ": no such tensor", ""});
  if (const Status written = writer->write_doc(from->doc()); !written) return fail(written.error());
  const Status done = writer->commit();
  return done ? 0 : fail(done.error());
}
