#include "probe/record/arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "probe/tensor/copy_memory.h"

namespace nanquest::record {
namespace {

constexpr std::size_t kAlign = 64, kChunk = 1 << 20;

}  // namespace

void ValueArena::Freed::operator()(std::byte* bytes) const {
  if (mapped > 0)
    ::munmap(bytes, mapped);
  else
    std::free(bytes);
}

/// Large chunks don't come from malloc. They live long, and the program's own allocations between them would
/// leave holes when freed (460 MB of holes for a step with 100 MB of weights).
std::unique_ptr<std::byte[], ValueArena::Freed> ValueArena::room_for(std::size_t size) {
  if (size < kLargeCopy) {
    void* bytes = std::aligned_alloc(kAlign, size);
    if (!bytes) throw std::bad_alloc();
    return {static_cast<std::byte*>(bytes), Freed{}};
  }
  const std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t mapped = (size + page - 1) / page * page;
  void* got = ::mmap(nullptr, mapped + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (got == MAP_FAILED) throw std::bad_alloc();
  // Huge pages begin at multiples of their size; the rest before and behind is returned.
  std::byte* const first = static_cast<std::byte*>(got);
  const std::size_t over = reinterpret_cast<std::uintptr_t>(first) % kHugePage;
  const std::size_t before = over == 0 ? 0 : kHugePage - over;
  if (before > 0) ::munmap(first, before);
  if (before < kHugePage) ::munmap(first + before + mapped, kHugePage - before);
  ask_for_huge_pages(first + before, mapped);
  return {first + before, Freed{mapped}};
}

std::byte* ValueArena::take(std::size_t bytes) {
  const std::size_t wanted = (bytes + kAlign - 1) / kAlign * kAlign;
  if (chunk_ < chunks_.size() && chunks_[chunk_].size - used_ < wanted) {
    ++chunk_;
    used_ = 0;
  }
  if (chunk_ == chunks_.size() || chunks_[chunk_].size < wanted) {
    const std::size_t size = std::max(wanted, kChunk);
    // The old chunk is freed first: with both at once, a model whose sizes vary could need twice the memory.
    if (chunk_ < chunks_.size()) chunks_.erase(chunks_.begin() + static_cast<std::ptrdiff_t>(chunk_));
    Chunk chunk{room_for(size), size};
    chunks_.insert(chunks_.begin() + static_cast<std::ptrdiff_t>(chunk_), std::move(chunk));
    ++grown_;
  }
  std::byte* const place = chunks_[chunk_].bytes.get() + used_;
  used_ += wanted;
  return place;
}

std::size_t ValueArena::capacity() const {
  std::size_t all = 0;
  for (const Chunk& chunk : chunks_) all += chunk.size;
  return all;
}

}  // namespace nanquest::record
