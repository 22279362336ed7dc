#include "probe/numerics/strided.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "probe/base/check.h"
#include "probe/numerics/hash.h"
#include "probe/numerics/scan.h"

namespace nanquest {
namespace detail {
namespace {

template <std::size_t Size>
void copy_run(unsigned char* out, const unsigned char* in, std::size_t n, std::int64_t stride) {
  for (std::size_t i = 0; i < n; ++i, out += Size, in += stride) std::memcpy(out, in, Size);
}

void copy_run(std::size_t size, unsigned char* out, const unsigned char* in, std::size_t n,
              std::int64_t stride) {
  if (stride == static_cast<std::int64_t>(size)) {
    std::memcpy(out, in, n * size);
    return;
  }
  switch (size) {
    case 1:
      return copy_run<1>(out, in, n, stride);
    case 2:
      return copy_run<2>(out, in, n, stride);
    case 4:
      return copy_run<4>(out, in, n, stride);
    case 8:
      return copy_run<8>(out, in, n, stride);
    case 16:
      return copy_run<16>(out, in, n, stride);
    default:
      for (std::size_t i = 0; i < n; ++i, out += size, in += stride) std::memcpy(out, in, size);
  }
}

}  // namespace

StridedWalk::StridedWalk(std::size_t element_size, const void* data, std::span<const std::int64_t> sizes,
                         std::span<const std::int64_t> strides)
    : element_size_(element_size), at_(static_cast<const unsigned char*>(data)) {
  NANQUEST_CHECK(element_size > 0 && element_size <= kHashBlock,
                 std::to_string(element_size) + " bytes an element");
  NANQUEST_CHECK(sizes.size() == strides.size(), "a view has as many strides as sizes");
  const auto bytes = static_cast<std::int64_t>(element_size);
  for (const std::int64_t size : sizes)
    NANQUEST_CHECK(!__builtin_mul_overflow(count_, std::max<std::int64_t>(size, 0), &count_), "elements of a view");
  left_ = count_;
  if (count_ == 0) return;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 1) continue;
    const std::int64_t stride = strides[d] * bytes;
    if (dims_ > 0 && strides_[dims_ - 1] == stride * sizes[d]) {
      sizes_[dims_ - 1] *= sizes[d];
      strides_[dims_ - 1] = stride;
    } else {
      NANQUEST_CHECK(dims_ < kMaxDims, "dimensions of a view");
      sizes_[dims_] = sizes[d];
      strides_[dims_] = stride;
      ++dims_;
    }
  }
  if (dims_ == 0) {  // a single element
    sizes_[0] = 1;
    strides_[0] = bytes;
    dims_ = 1;
  }
  std::fill_n(index_, dims_, 0);
}

const void* StridedWalk::contiguous() const {
  if (count_ == 0) return at_;
  return dims_ == 1 && strides_[0] == static_cast<std::int64_t>(element_size_) ? at_ : nullptr;
}

void StridedWalk::advance_outer() {
  for (int d = dims_ - 1; d >= 0; --d) {
    if (index_[d] < sizes_[d]) return;
    at_ -= strides_[d] * sizes_[d];
    index_[d] = 0;
    if (d == 0) return;
    ++index_[d - 1];
    at_ += strides_[d - 1];
  }
}

std::size_t StridedWalk::next(void* out, std::size_t capacity) {
  auto* to = static_cast<unsigned char*>(out);
  std::size_t done = 0;
  const int inner = dims_ - 1;
  while (done < capacity && left_ > 0) {
    const std::size_t n = std::min(capacity - done, static_cast<std::size_t>(sizes_[inner] - index_[inner]));
    copy_run(element_size_, to + done * element_size_, at_, n, strides_[inner]);
    at_ += strides_[inner] * static_cast<std::int64_t>(n);
    index_[inner] += static_cast<std::int64_t>(n);
    done += n;
    left_ -= n;
    advance_outer();
  }
  return done;
}

// Whole hash blocks for every element size, and small enough to stay in the first-level cache.
constexpr std::size_t kBuffer = 16 * 1024;

}  // namespace detail

ScanResult scan_strided(DType type, const void* data, std::span<const std::int64_t> sizes,
                        std::span<const std::int64_t> strides, ExponentHistogram* histogram) {
  detail::StridedWalk walk(dtype_size(type), data, sizes, strides);
  if (const void* run = walk.contiguous()) return scan(type, run, walk.count(), histogram);
  alignas(64) unsigned char buffer[detail::kBuffer];
  ScanResult result;
  while (const std::size_t n = walk.next(buffer, detail::kBuffer / dtype_size(type)))
    result.merge(scan(type, buffer, n, histogram));
  return result;
}

ScanAndHash scan_and_hash_strided(DType type, const void* data, std::span<const std::int64_t> sizes,
                                  std::span<const std::int64_t> strides, ExponentHistogram* histogram) {
  const std::size_t element = dtype_size(type);
  detail::StridedWalk walk(element, data, sizes, strides);
  if (const void* run = walk.contiguous()) return scan_and_hash(type, run, walk.count(), histogram);
  alignas(64) unsigned char buffer[detail::kBuffer];
  ScanAndHash both;
  ContentsHash hash;
  // Every element size divides a hash block, so all buffers but the last are whole blocks.
  while (const std::size_t n = walk.next(buffer, detail::kBuffer / element)) {
    both.scan.merge(scan(type, buffer, n, histogram));
    if (n * element < detail::kBuffer) {
      both.hash = hash.finish(buffer, n * element);
      return both;
    }
    hash.add_blocks(buffer, detail::kBuffer / kHashBlock);
  }
  both.hash = hash.finish(buffer, 0);
  return both;
}

namespace {

/// `whole` of the view's bytes if they are contiguous, otherwise of a copy, piece by piece, with a State.
template <class State>
std::uint64_t hash_view(std::size_t element_size, const void* data, std::span<const std::int64_t> sizes,
                        std::span<const std::int64_t> strides,
                        std::uint64_t (*whole)(const void* data, std::size_t bytes)) {
  detail::StridedWalk walk(element_size, data, sizes, strides);
  if (const void* run = walk.contiguous()) return whole(run, walk.count() * element_size);
  alignas(64) unsigned char buffer[detail::kBuffer];
  State state;
  std::size_t held = 0;
  while (const std::size_t n = walk.next(buffer + held, (detail::kBuffer - held) / element_size)) {
    held += n * element_size;
    const std::size_t blocks = held / kHashBlock;
    state.add_blocks(buffer, blocks);
    held -= blocks * kHashBlock;
    std::memmove(buffer, buffer + blocks * kHashBlock, held);
  }
  return state.finish(buffer, held);
}

}  // namespace

std::uint64_t hash_strided(std::size_t element_size, const void* data, std::span<const std::int64_t> sizes,
                           std::span<const std::int64_t> strides) {
  return hash_view<ContentsHash>(element_size, data, sizes, strides, hash_contents);
}

std::uint64_t hash_bytes_strided(std::size_t element_size, const void* data,
                                 std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides) {
  return hash_view<HashState>(element_size, data, sizes, strides, hash_bytes);
}

}  // namespace nanquest
