#include "probe/record/tape_values.h"

#include <ATen/ATen.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <set>
#include <utility>

#include "probe/record/governor.h"
#include "probe/tensor/parallel.h"

namespace nanquest::record {
namespace {

/// Smaller copies stay in memory: each file is a mapping of its own, and a process can have about 65,000.
constexpr std::size_t kInFiles = std::size_t{1} << 20;
constexpr std::size_t kHost = 0, kFiles = 1;

/// What a user without special rights may still write there; 0 if unknown.
std::uint64_t free_in(const std::string& folder) {
  struct statvfs disk = {};
  return ::statvfs(folder.c_str(), &disk) == 0 ? std::uint64_t{disk.f_bavail} * disk.f_frsize : 0;
}

/// An open file of `folder` without a name; -1 on failure, with errno.
int nameless_file(const std::string& folder) {
  const int file = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return file;
  std::string name = folder + "/.nanquest-tape-XXXXXX";  // a file system without such files
  const int named = ::mkostemp(name.data(), O_CLOEXEC);
  if (named >= 0) ::unlink(name.c_str());
  return named;
}

/// Memory mapped to a file; undefined on failure, with errno. The disk space is reserved now: a later write
/// into the memory could not fail, it would kill the program.
at::Tensor in_file(const std::string& folder, std::size_t bytes) {
  const int file = nameless_file(folder);
  if (file < 0) return {};
  const auto size = static_cast<off_t>(bytes);
  int failed = ::posix_fallocate(file, 0, size);
  void* const at =
      failed == 0 ? ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
  if (failed == 0 && at == MAP_FAILED) failed = errno;
  ::close(file);
  errno = failed;
  if (at == MAP_FAILED) return {};
  return at::from_blob(
      at, {static_cast<std::int64_t>(bytes)}, [bytes](void* memory) { ::munmap(memory, bytes); },
      at::TensorOptions().dtype(at::kByte));
}

/// A view of a device's whole storage.
at::Tensor view_of(const c10::Storage& storage) {
  return at::empty({0}, at::TensorOptions().dtype(at::kByte).device(storage.device())).set_(storage);
}

void fill(at::Tensor& copy, const c10::Storage& storage, std::size_t bytes) {
  if (!storage.device().is_cpu())
    copy.copy_(view_of(storage).narrow(0, 0, static_cast<std::int64_t>(bytes)));
  else if (bytes > 0 && storage.data())
    parallel_copy(copy.mutable_data_ptr(), storage.data(), bytes);
}

}  // namespace

TapeValues::TapeValues(TapeRoom room) : room_(std::move(room)) {
  add_place(free_memory());
  const auto processes = static_cast<std::uint64_t>(processes_here());  // all of them write there
  add_place(room_.folder.empty() ? 0 : free_in(room_.folder) / processes);
}

void TapeValues::add_place(std::uint64_t free) {
  places_.push_back({.room = static_cast<std::uint64_t>(room_.share * static_cast<double>(free))});
}

std::size_t TapeValues::memory_of(at::Device device) {
  if (device.is_cpu()) return kHost;
  const auto at = std::find(devices_.begin(), devices_.end(), device);
  const auto index = static_cast<std::size_t>(at - devices_.begin());
  if (at == devices_.end()) {
    devices_.push_back(device);
    add_place(free_memory(device));
  }
  return kFiles + 1 + index;
}

bool TapeValues::takes(std::size_t place, std::uint64_t bytes) const {
  return places_[place].held + bytes <= places_[place].room;
}

void TapeValues::refuse(std::size_t place, const char* takes) {
  const std::string most = amount(static_cast<double>(places_[place].room));
  why_ = place == kFiles
             ? "what was free in " + room_.folder + " (give another --tape-folder, or a smaller --tape)"
             : "the memory that was free (give a larger --keep-memory-percent, a smaller --tape, or a "
               "--tape-folder)";
  why_ = std::string("it ") + takes + " more than " + most + ", its share of " + why_;
}

std::optional<TapeValue> TapeValues::copy(const c10::Storage& storage, std::size_t bytes) {
  const auto size = static_cast<std::int64_t>(bytes);
  TapeValue made;
  if (!room_.folder.empty() && bytes >= kInFiles) {
    made.place = kFiles;
    if (!takes(kFiles, bytes)) return refuse(kFiles, "would take"), std::nullopt;
    made.bytes = in_file(room_.folder, bytes);
    if (!made.bytes.defined()) {
      why_ = "it can't be kept in " + room_.folder + ": " + std::strerror(errno);
      return std::nullopt;
    }
    fill(made.bytes, storage, bytes);
  } else if (const std::size_t own = memory_of(storage.device()); own != kHost && takes(own, bytes)) {
    made.place = own;
    made.bytes = view_of(storage).narrow(0, 0, size).clone();
  } else {
    made.place = kHost;
    if (!takes(kHost, bytes)) return refuse(kHost, "would take"), std::nullopt;
    made.bytes = at::empty({size}, at::kByte);
    fill(made.bytes, storage, bytes);
  }
  places_[made.place].held += bytes;
  return made;
}

bool TapeValues::add_rows(std::uint64_t bytes) {
  places_[kHost].held += bytes;
  if (takes(kHost, 0)) return true;
  refuse(kHost, "took");
  return false;
}

void TapeValues::recount(std::uint64_t rows, const std::vector<const TapeValue*>& values) {
  for (Place& place : places_) place.held = 0;
  places_[kHost].held = rows;
  std::set<const void*> counted;
  for (const TapeValue* value : values)
    if (counted.insert(value->bytes.unsafeGetTensorImpl()).second)
      places_[value->place].held += value->bytes.nbytes();
}

bool TapeValues::fit_again(const std::vector<const TapeValue*>& values) const {
  std::vector<std::uint64_t> more(places_.size());
  for (const TapeValue* value : values) more[value->place] += value->bytes.nbytes();
  // What does not fit on a device goes to the host.
  std::uint64_t host = more[kHost];
  for (std::size_t place = kFiles + 1; place < places_.size(); ++place)
    if (places_[place].held + more[place] > places_[place].room) host += more[place];
  return places_[kHost].held + host <= places_[kHost].room &&
         places_[kFiles].held + more[kFiles] <= places_[kFiles].room;
}

std::uint64_t TapeValues::held() const {
  std::uint64_t sum = 0;
  for (const Place& place : places_) sum += place.held;
  return sum;
}

}  // namespace nanquest::record
