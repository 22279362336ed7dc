#include "probe/capture/standing/values.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "probe/tensor/copy_memory.h"

namespace nanquest::standing {
namespace {

constexpr std::size_t kAlign = 64, kChunk = 1 << 20;
constexpr std::size_t kSamples = 64;

std::uint64_t mix(std::uint64_t sum, const void* word) {
  std::uint64_t value;
  std::memcpy(&value, word, sizeof value);
  sum = (sum ^ value) * 0x9E3779B97F4A7C15ull;
  return sum ^ (sum >> 29);
}

std::byte* chunk_of(std::size_t size) {
  const bool large = size >= kLargeCopy;
  void* bytes = std::aligned_alloc(large ? kHugePage : kAlign, size);
  if (!bytes) throw std::bad_alloc();
  if (large) ask_for_huge_pages(bytes, size);
  return static_cast<std::byte*>(bytes);
}

}  // namespace

void ValueArena::Freed::operator()(std::byte* bytes) const {
  std::free(bytes);
}

std::byte* ValueArena::take(std::size_t bytes) {
  const std::size_t wanted = (bytes + kAlign - 1) / kAlign * kAlign;
  if (chunk_ < chunks_.size() && chunks_[chunk_].size - used_ < wanted) {
    ++chunk_;
    used_ = 0;
  }
  if (chunk_ == chunks_.size() || chunks_[chunk_].size < wanted) {
    const std::size_t size = std::max(wanted, kChunk);
    // The old chunk goes first: with both, a model whose sizes vary could need twice the memory.
    if (chunk_ < chunks_.size()) chunks_.erase(chunks_.begin() + static_cast<std::ptrdiff_t>(chunk_));
    Chunk chunk{std::unique_ptr<std::byte[], Freed>(chunk_of(size)), size};
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

std::uint64_t sampled_checksum(const void* data, std::size_t bytes) {
  const auto* at = static_cast<const std::byte*>(data);
  std::uint64_t sum = bytes;
  if (!data || bytes < sizeof(std::uint64_t)) return sum;
  const std::size_t last = bytes - sizeof(std::uint64_t);
  for (std::size_t i = 0; i < kSamples; ++i) sum = mix(sum, at + last / (kSamples - 1) * i);
  return mix(sum, at + last);
}

}  // namespace nanquest::standing
