/// The 64-bit hashes of bytes that snapshots store. Their definitions are part of the file format and never
/// change.
///
/// nq64, the checksum of stored bytes (`hash_bytes`). All arithmetic is modulo 2^64, words are
/// little-endian, `lo` and `hi` are a word's 32-bit halves.
///
///     key(i)   = splitmix64's output number i (from 0) for the seed 0x6e616e7175657374 ("nanquest")
///     mix(x)   = x ^= x >> 30; x *= 0xbf58476d1ce4e5b9; x ^= x >> 27; x *= 0x94d049bb133111eb; x ^= x >> 31
///
///     acc[j]   = key(128 + j), j = 0 … 7
///     The bytes are cut into blocks of 1024, a block into 16 stripes of 8 words. The last block may be
/// shorter; it is padded with zero bytes to a whole stripe. For stripe s of a block, lane j, word w:
///         k = w ^ key(8 s + j);   acc[j] += lo(k) * hi(k);   acc[j ^ 1] += w
///     After each block, short or not:  acc[j] = (acc[j] ^ (acc[j] >> 47) ^ key(136 + j)) * 0x9e3779b1
///     h = length in bytes * 0x9e3779b97f4a7c15;  for j = 0 … 7:  h = mix(h ^ acc[j]) + key(144 + j)
///     hash = mix(h)
///
/// Reasons: the products of keyed halves are the NH family (Black, Halevi, Krawczyk, Krovetz, Rogaway,
/// "UMAC", 1999), cheap in vectors of any width. Every position of a block has its own key, so order matters.
/// Adding the word itself to the neighbouring lane makes every change of a single word visible. The step
/// between blocks is a bijection, so it preserves a difference. The hash gives no protection against forgery.
///
/// nq64p, the hash of a tensor's contents (`hash_contents`): nq64 goes from block to block, so one thread
/// must compute all of it. nq64p cuts the bytes into parts of 512 KiB (the last may be shorter). For at most
/// one part it is the nq64 of the bytes, otherwise the nq64 of the parts' nq64 as little-endian words, in
/// order.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nanquest {

inline constexpr std::size_t kHashBlock = 1024;                 ///< bytes of a block of nq64
inline constexpr std::size_t kHashPart = std::size_t{1} << 19;  ///< bytes of a part of nq64p

/// An nq64 in progress. Feed whole blocks in order, then the rest.
class HashState {
 public:
  HashState();

  /// Adds `count` whole blocks (`count * kHashBlock` bytes, any alignment).
  void add_blocks(const void* data, std::size_t count);

  /// Adds the last `bytes` bytes, any number, and returns the hash. The state is used up.
  std::uint64_t finish(const void* data, std::size_t bytes);

 private:
  alignas(64) std::uint64_t lanes_[8];
  std::uint64_t length_ = 0;
};

/// nq64p from the nq64 of its parts, computed anywhere. No allocation.
class PartHashes {
 public:
  /// Adds the hash of the next part.
  void add(std::uint64_t part);

  /// The hash of all parts added; that of no bytes if there were none. The state is used up.
  std::uint64_t finish();

 private:
  HashState state_;
  std::uint64_t held_[kHashBlock / sizeof(std::uint64_t)];  // little-endian; one block is added at a time
  std::size_t count_ = 0;                                   // parts so far
};

/// An nq64p in progress, for bytes that arrive in pieces. Feed whole blocks in order, then the rest.
class ContentsHash {
 public:
  /// Adds `count` whole blocks (`count * kHashBlock` bytes, any alignment).
  void add_blocks(const void* data, std::size_t count);

  /// Adds the last `bytes` bytes, any number, and returns the hash. The state is used up.
  std::uint64_t finish(const void* data, std::size_t bytes);

 private:
  void close_part();

  HashState part_;
  std::size_t blocks_ = 0;  // in `part_`; a full part is closed when more bytes arrive
  PartHashes parts_;
};

/// 64-bit hash of contiguous bytes, the checksum of file contents: equal bits, equal hash (NaN payloads and
/// signed zeros count). The definition (nq64) is part of the file format: never change it, add a new one.
/// Thread-safe, no allocation.
std::uint64_t hash_bytes(const void* data, std::size_t bytes);

/// 64-bit hash of a tensor's contents (nq64p; up to 512 KiB it equals `hash_bytes`): several threads can hash
/// its parts. Thread-safe, no allocation.
std::uint64_t hash_contents(const void* data, std::size_t bytes);

}  // namespace nanquest
