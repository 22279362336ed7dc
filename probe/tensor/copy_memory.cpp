#include "probe/tensor/copy_memory.h"

#include <ATen/ATen.h>
#include <sys/mman.h>

#include <atomic>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace nanquest {
namespace {

/// A mapping and the first huge page boundary in it.
struct Piece {
  void* mapping = nullptr;
  std::size_t mapped = 0;
  void* begin() const {
    return reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(mapping) + kHugePage - 1) / kHugePage *
                                   kHugePage);
  }
};

struct Spare {
  std::mutex mutex;
  std::multimap<std::size_t, Piece> pieces;  // by requested size
  std::atomic<std::size_t> bytes{0};
};

Spare& spare() {
  static auto* one = new Spare;  // leaked: tensors may outlive static destructors
  return *one;
}

Piece piece_of(std::size_t bytes) {
  Spare& all = spare();
  {
    const std::lock_guard lock(all.mutex);
    if (const auto found = all.pieces.find(bytes); found != all.pieces.end()) {
      const Piece piece = found->second;
      all.pieces.erase(found);
      all.bytes -= bytes;
      return piece;
    }
  }
  Piece piece;
  piece.mapped = bytes + kHugePage;
  piece.mapping = ::mmap(nullptr, piece.mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (piece.mapping == MAP_FAILED) return {};
  ask_for_huge_pages(piece.mapping, piece.mapped);
  return piece;
}

void give_back(std::size_t bytes, const Piece& piece) {
  Spare& all = spare();
  const std::lock_guard lock(all.mutex);
  all.pieces.emplace(bytes, piece);
  all.bytes += bytes;
}

}  // namespace

void ask_for_huge_pages(void* memory, std::size_t bytes) {
  (void)::madvise(memory, bytes, MADV_HUGEPAGE);
}

at::Tensor large_copy_memory(std::int64_t elements, at::ScalarType type) {
  const std::size_t bytes = static_cast<std::size_t>(elements) * c10::elementSize(type);
  const Piece piece = piece_of(bytes);
  if (!piece.mapping) return {};
  return at::from_blob(
      piece.begin(), {elements}, [bytes, piece](void*) { give_back(bytes, piece); },
      at::TensorOptions().dtype(type));
}

void release_spare_copies() {
  Spare& all = spare();
  if (all.bytes == 0) return;
  std::multimap<std::size_t, Piece> pieces;
  {
    const std::lock_guard lock(all.mutex);
    pieces.swap(all.pieces);
    all.bytes = 0;
  }
  for (const auto& [bytes, piece] : pieces) ::munmap(piece.mapping, piece.mapped);
}

std::size_t spare_copy_bytes() {
  return spare().bytes;
}

}  // namespace nanquest
