#include "probe/numerics/hash.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <iterator>

#include "probe/numerics/hash_element.h"
#include "probe/numerics/implementation.h"
#include "probe/numerics/scan.h"

namespace nanquest {
namespace {

constexpr auto make_keys() {
  std::array<std::uint64_t, kHashFinalKeys + kHashLanes> keys{};
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = hash_key(static_cast<int>(i));
  return keys;
}
alignas(64) constexpr auto kKeys = make_keys();

std::uint64_t load_word(const unsigned char* p) {
  std::uint64_t word;
  std::memcpy(&word, p, sizeof word);
  if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
  return word;
}

void add_stripe(std::uint64_t* lanes, const unsigned char* p, int stripe) {
  for (int j = 0; j < kHashLanes; ++j) {
    const std::uint64_t word = load_word(p + 8 * j);
    lanes[j] += hash_product(word, kKeys[kHashLanes * stripe + j]);
    lanes[j ^ 1] += word;
  }
}

void scramble(std::uint64_t* lanes) {
  for (int j = 0; j < kHashLanes; ++j) lanes[j] = hash_scramble(lanes[j], kKeys[kHashScrambleKeys + j]);
}

}  // namespace

HashState::HashState() {
  for (int j = 0; j < kHashLanes; ++j) lanes_[j] = kKeys[kHashInitialKeys + j];
}

void HashState::add_blocks(const void* data, std::size_t count) {
  length_ += count * kHashBlock;
  detail::implementation().hash_blocks(data, count, kKeys.data(), lanes_);
}

std::uint64_t HashState::finish(const void* data, std::size_t bytes) {
  add_blocks(data, bytes / kHashBlock);
  const auto* p = static_cast<const unsigned char*>(data) + bytes / kHashBlock * kHashBlock;
  std::size_t rest = bytes % kHashBlock;
  length_ += rest;
  if (rest != 0) {
    for (int s = 0; rest != 0; ++s) {
      unsigned char stripe[8 * kHashLanes] = {};
      const std::size_t take = rest < sizeof stripe ? rest : sizeof stripe;
      std::memcpy(stripe, p, take);
      add_stripe(lanes_, stripe, s);
      p += take;
      rest -= take;
    }
    scramble(lanes_);
  }
  return hash_of_lanes(length_, lanes_);
}

void PartHashes::add(std::uint64_t part) {
  if constexpr (std::endian::native == std::endian::big) part = __builtin_bswap64(part);
  constexpr std::size_t most = std::size(decltype(held_){});
  held_[count_++ % most] = part;
  if (count_ % most == 0) state_.add_blocks(held_, 1);
}

std::uint64_t PartHashes::finish() {
  if (count_ == 0) return hash_bytes(nullptr, 0);
  if (count_ == 1) return load_word(reinterpret_cast<const unsigned char*>(held_));
  return state_.finish(held_, count_ % std::size(held_) * sizeof held_[0]);
}

void ContentsHash::close_part() {
  parts_.add(part_.finish(nullptr, 0));
  part_ = HashState();
  blocks_ = 0;
}

void ContentsHash::add_blocks(const void* data, std::size_t count) {
  constexpr std::size_t most = kHashPart / kHashBlock;
  const auto* p = static_cast<const unsigned char*>(data);
  while (count > 0) {
    if (blocks_ == most) close_part();
    const std::size_t take = std::min(count, most - blocks_);
    part_.add_blocks(p, take);
    blocks_ += take;
    count -= take;
    p += take * kHashBlock;
  }
}

std::uint64_t ContentsHash::finish(const void* data, std::size_t bytes) {
  const std::size_t rest = bytes % kHashBlock;
  add_blocks(data, bytes / kHashBlock);
  if (rest != 0 && blocks_ == kHashPart / kHashBlock) close_part();
  parts_.add(part_.finish(static_cast<const unsigned char*>(data) + (bytes - rest), rest));
  return parts_.finish();
}

std::uint64_t hash_bytes(const void* data, std::size_t bytes) {
  return HashState().finish(data, bytes);
}

std::uint64_t hash_contents(const void* data, std::size_t bytes) {
  return ContentsHash().finish(data, bytes);
}

}  // namespace nanquest
