// fuzz_snapshot SECONDS SEED FINDS [FOLDER…]: opens mutated snapshots, and every file of FINDS, in children.
// It mutates a snapshot made for this and every *.h5 of the folders. SEED 0 is today's seed: each night has
// its own.
//
// Half of the mutants keep their (now wrong) seal, like damaged files. They must be refused or give an error
// for the tensor that was hit. The other half is sealed again, as a forger would, so that libhdf5 and the
// guards read the mutations. A child that dies or hangs is a find: its file is kept in FINDS, and the exit
// code is 1.
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <limits>
#include <random>

#include "probe/snapshot/atomic_file.h"
#include "probe/snapshot/schema.h"
#include "probe/snapshot/seal.h"
#include "tests/snapshot/rich_doc.h"

namespace {

using namespace nanquest;

constexpr int kPerChild = 40;

/// Reads everything; returns how many tensors differ from `want` without an error (must be none if `sealed`).
int read_everything(const std::string& path, bool& opened) {
  Result<SnapshotReader> reader = SnapshotReader::open(path);
  opened = reader.ok();
  if (!reader) return 0;
  int silent = 0;
  const Result<std::vector<TensorInfo>> tensors = reader->tensors();
  if (!tensors) return 0;
  for (const TensorInfo& info : *tensors) {
    const Result<TensorData> got = reader->read_tensor(info.path);
    if (got && got->bytes.size() != info.bytes) ++silent;
  }
  return silent;
}

/// A file to be mutated, and the format version that a forger would claim.
struct Seed {
  std::string bytes;
  int major = kFormatMajor, minor = kFormatMinor;
};

/// One change: a byte, a bit, a number that is difficult for lengths and offsets, or a piece of the file
/// moved to another place.
void change(std::string& bytes, std::mt19937& random) {
  // Metadata are mostly at the front, so changes are twice as frequent there.
  const std::size_t range = random() % 2 == 0 ? bytes.size() : std::min<std::size_t>(bytes.size(), 40000);
  const std::size_t at = random() % range, left = bytes.size() - at;
  constexpr std::uint64_t numbers[] = {0,
                                       1,
                                       2,
                                       0x7f,
                                       0xff,
                                       0x7fff,
                                       0xffff,
                                       0x7fffffff,
                                       0xffffffff,
                                       1ULL << 32,
                                       std::numeric_limits<std::int64_t>::max(),
                                       ~0ULL,
                                       ~0ULL - 7};
  switch (random() % 4) {
    case 0:
      bytes[at] = static_cast<char>(random());
      break;
    case 1:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
      break;
    case 2: {
      const std::uint64_t number = numbers[random() % std::size(numbers)];
      const std::size_t size = std::size_t{1} << random() % 4;
      std::memcpy(bytes.data() + at, &number, std::min(size, left));
      break;
    }
    default: {
      const std::string piece = bytes.substr(random() % bytes.size(), 1 + random() % 64);
      bytes.replace(at, std::min(piece.size(), left), piece, 0, std::min(piece.size(), left));
    }
  }
}

std::string mutate(const std::string& whole, std::mt19937& random) {
  std::string bytes = whole;
  const int count = 1 + static_cast<int>(random() % 6);
  for (int i = 0; i < count; ++i) change(bytes, random);
  if (random() % 16 == 0) bytes.resize(random() % bytes.size());
  return bytes;
}

struct Shared {
  int at;
  int opened;
};

/// One child: mutants number first … first + kPerChild - 1.
void child(const std::vector<Seed>& seeds, const std::string& file, unsigned seed, int first,
           Shared* shared) {
#ifndef __SANITIZE_ADDRESS__
  const rlimit memory{rlim_t{4} << 30, rlim_t{4} << 30};
  ::setrlimit(RLIMIT_AS, &memory);
#endif
  ::alarm(60);
  for (int i = first; i < first + kPerChild; ++i) {
    std::mt19937 random(seed * 1'000'003u + static_cast<unsigned>(i));
    const Seed& one = seeds[static_cast<std::size_t>(i / 2) % seeds.size()];
    const std::string bytes = mutate(one.bytes, random);
    const bool forged = i % 2 == 1 && bytes.size() > kSealBytes;
    std::FILE* out = std::fopen(file.c_str(), "wb");
    if (out == nullptr || std::fwrite(bytes.data(), 1, bytes.size(), out) != bytes.size()) ::_exit(9);
    std::fclose(out);
    if (forged && !seal_file(file, one.major, one.minor, {})) ::_exit(9);
    shared->at = i;
    bool opened = false;
    if (read_everything(file, opened) != 0) ::abort();
    shared->opened += opened ? 1 : 0;
  }
  ::_exit(0);
}

bool died(pid_t pid) {
  int status = 0;
  ::waitpid(pid, &status, 0);
  return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

std::vector<std::string> snapshots_in(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.is_regular_file() && entry.path().extension() == ".h5") paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// The snapshot made for this, and those of the folders with the versions in their seals.
std::vector<Seed> seeds_of(const std::string& made, const std::vector<std::string>& folders) {
  std::vector<Seed> seeds = {{*read_whole_file(made)}};
  for (const std::string& folder : folders)
    for (const std::string& path : snapshots_in(folder))
      if (const Result<SealInfo> seal = check_seal(path, kFormatMajor))
        seeds.push_back({*read_whole_file(path), seal->major, seal->minor});
  return seeds;
}

int open_finds(const std::string& folder) {
  int finds = 0;
  for (const std::string& path : snapshots_in(folder)) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::alarm(60);
      bool opened = false;
      ::_exit(read_everything(path, opened));
    }
    if (!died(pid)) continue;
    std::printf("still dies: %s\n", path.c_str());
    ++finds;
  }
  return finds;
}

unsigned seed_of(const char* text) {
  const int given = std::atoi(text);
  return static_cast<unsigned>(given != 0 ? given : std::time(nullptr) / 86400);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return std::fprintf(stderr, "usage: fuzz_snapshot SECONDS SEED FINDS [FOLDER...]\n"), 2;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(std::atof(argv[1]));
  const unsigned seed = seed_of(argv[2]);
  const std::string folder = argv[3];
  nanquest::testing::TempDir dir;
  if (!nanquest::testing::write_rich(dir / "seed.h5")) return 70;
  const std::vector<Seed> seeds = seeds_of(dir / "seed.h5", {argv + 4, argv + argc});
  auto* shared = static_cast<Shared*>(
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  int finds = open_finds(folder), done = 0;
  for (int first = 0; std::chrono::steady_clock::now() < end; first += kPerChild) {
    const pid_t pid = ::fork();
    if (pid == 0) child(seeds, dir / "mutant.h5", seed, first, shared);
    done += kPerChild;
    if (!died(pid)) continue;
    ++finds;
    const std::string kept =
        folder + "/find-" + std::to_string(seed) + "-" + std::to_string(shared->at) + ".h5";
    std::error_code error;
    std::filesystem::copy_file(dir / "mutant.h5", kept, std::filesystem::copy_options::overwrite_existing,
                               error);
    std::printf("a child died at mutant %d: %s\n", shared->at,
                error ? error.message().c_str() : kept.c_str());
  }
  std::printf("seed %u: %d mutants of %zu files, %d opened, %d finds\n", seed, done, seeds.size(),
              shared->opened, finds);
  return finds == 0 ? 0 : 1;
}
