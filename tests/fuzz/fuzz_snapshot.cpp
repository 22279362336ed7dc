// fuzz_snapshot SECONDS SEED CORPUS: opens mutated snapshots, and every file of CORPUS, in children.
//
// Half of the mutants keep their (now wrong) seal, as damaged files do, and must be refused or give an
// error for the tensor that was hit. The other half is sealed again, as a forger would, so that libhdf5 and
// the guards meet the mutations. A child that dies or hangs is a find: its file is kept in CORPUS. Exit code
// 1 then.
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "probe/snapshot/atomic_file.h"
#include "probe/snapshot/seal.h"
#include "tests/snapshot/rich_doc.h"

namespace {

using namespace nanquest;

constexpr int kPerChild = 40;

/// Reads all there is; returns how many tensors differ from `want` without an error (must be none if
/// `sealed`).
int read_everything(const std::string& path, bool& opened) {
  Result<SnapshotReader> reader = SnapshotReader::open(path);
  opened = reader.ok();
  if (!reader) return 0;
  int silent = 0;
  const Result<std::vector<TensorInfo>> tensors = reader->tensors();
  for (const TensorInfo& info : *tensors) {
    const Result<TensorData> got = reader->read_tensor(info.path);
    if (got && got->bytes.size() != info.bytes) ++silent;
  }
  return silent;
}

std::string mutate(const std::string& whole, std::mt19937& random) {
  std::string bytes = whole;
  const int count = 1 + static_cast<int>(random() % 6);
  for (int i = 0; i < count; ++i) {
    // Metadata stand at the front more often than not: look there twice as often.
    const std::size_t range = random() % 2 == 0 ? bytes.size() : std::min<std::size_t>(bytes.size(), 40000);
    bytes[random() % range] = static_cast<char>(random());
  }
  if (random() % 16 == 0) bytes.resize(random() % bytes.size());
  return bytes;
}

struct Shared {
  int at;
  int opened;
};

/// One child: mutants number first … first + kPerChild - 1.
void child(const std::string& whole, const std::string& file, unsigned seed, int first, Shared* shared) {
#ifndef __SANITIZE_ADDRESS__
  const rlimit memory{rlim_t{4} << 30, rlim_t{4} << 30};
  ::setrlimit(RLIMIT_AS, &memory);
#endif
  ::alarm(60);
  for (int i = first; i < first + kPerChild; ++i) {
    std::mt19937 random(seed * 1'000'003u + static_cast<unsigned>(i));
    const std::string bytes = mutate(whole, random);
    const bool forged = i % 2 == 1 && bytes.size() > kSealBytes;
    std::FILE* out = std::fopen(file.c_str(), "wb");
    if (out == nullptr || std::fwrite(bytes.data(), 1, bytes.size(), out) != bytes.size()) ::_exit(9);
    std::fclose(out);
    if (forged && !seal_file(file, 1, 0, {})) ::_exit(9);
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

int open_corpus(const std::string& corpus) {
  int finds = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(corpus, error)) {
    if (!entry.is_regular_file() || entry.path().extension() != ".h5") continue;
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::alarm(60);
      bool opened = false;
      ::_exit(read_everything(entry.path().string(), opened));
    }
    if (!died(pid)) continue;
    std::printf("still dies: %s\n", entry.path().c_str());
    ++finds;
  }
  return finds;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return std::fprintf(stderr, "usage: fuzz_snapshot SECONDS SEED CORPUS\n"), 2;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(std::atof(argv[1]));
  const auto seed = static_cast<unsigned>(std::atoi(argv[2]));
  const std::string corpus = argv[3];
  nanquest::testing::TempDir dir;
  if (!nanquest::testing::write_rich(dir / "seed.h5")) return 70;
  const std::string whole = *read_whole_file(dir / "seed.h5");
  auto* shared = static_cast<Shared*>(
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  int finds = open_corpus(corpus), done = 0;
  for (int first = 0; std::chrono::steady_clock::now() < end; first += kPerChild) {
    const pid_t pid = ::fork();
    if (pid == 0) child(whole, dir / "mutant.h5", seed, first, shared);
    done += kPerChild;
    if (!died(pid)) continue;
    ++finds;
    const std::string kept =
        corpus + "/find-" + std::to_string(seed) + "-" + std::to_string(shared->at) + ".h5";
    std::error_code error;
    std::filesystem::copy_file(dir / "mutant.h5", kept, std::filesystem::copy_options::overwrite_existing,
                               error);
    std::printf("a child died at mutant %d: %s\n", shared->at,
                error ? error.message().c_str() : kept.c_str());
  }
  std::printf("%d mutants, %d opened, %d finds\n", done, shared->opened, finds);
  return finds == 0 ? 0 : 1;
}
