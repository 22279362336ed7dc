// Writing 256 MB of tensors as a snapshot against raw write + fsync of the same bytes to the same directory.
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <random>

#include "probe/snapshot/reader.h"
#include "probe/snapshot/writer.h"
#include "tests/bench/report.h"

using namespace nanquest;

int main() {
  namespace fs = std::filesystem;
  std::string dir = (fs::temp_directory_path() / "nanquest-bench-XXXXXX").string();
  if (::mkdtemp(dir.data()) == nullptr) return 70;
  constexpr std::int64_t kTensors = 16, kElements = 4 << 20;  // 16 × 16 MiB of fp32
  std::vector<float> values(kTensors * kElements);
  std::mt19937 random(1);
  for (float& v : values) v = static_cast<float>(random()) * 0x1p-31f - 1.0f;
  const std::int64_t shape[] = {2048, 2048};
  bool good = true;
  const auto ours = [&] {
    Result<SnapshotWriter> writer = SnapshotWriter::create(dir + "/a.h5");
    good = good && writer;
    for (std::int64_t i = 0; good && i < kTensors; ++i)
      good = writer
                 ->write_tensor("parameters/w" + std::to_string(i),
                                {DType::float32, shape, values.data() + i * kElements})
                 .ok();
    good = good && writer->write_doc({}) && writer->commit();
    fs::remove(dir + "/a.h5");
  };
  const auto raw = [&] {
    const std::string path = dir + "/raw";
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    const char* at = reinterpret_cast<const char*>(values.data());
    for (std::size_t left = values.size() * sizeof(float); good && left > 0;) {
      const ssize_t n = ::write(fd, at, left);
      good = n > 0;
      at += n;
      left -= static_cast<std::size_t>(n);
    }
    good = good && ::fsync(fd) == 0 && ::close(fd) == 0;
    fs::remove(path);
  };
  std::vector<double> speed = bench::paired_ratios(ours, raw, 7);
  for (double& r : speed) r = 1 / r;  // time ratio to speed ratio
  std::printf("# snapshot: speed over that of raw write + fsync of the same 256 MiB to the same directory\n");
  bench::report("snapshot_write_256MiB", speed, 0.8, bench::Better::higher);
  fs::remove_all(dir);
  return good ? 0 : 70;
}
