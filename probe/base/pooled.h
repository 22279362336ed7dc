/// Pooled<T>: objects that are created and destroyed with every op. Freed blocks are reused on the same
/// thread instead of being returned to malloc. Blocks that a thread still holds when it ends are freed then.
///
///     struct Frame final : OpFrame, Pooled<Frame> { … };   // new Frame costs a few nanoseconds
///
/// T must be final, because all blocks have its size.
#pragma once

#include <cstddef>
#include <new>

namespace nanquest {

template <class T>
class Pooled {
 public:
  static void* operator new(std::size_t size) {
    Free& f = free_blocks();
    return f.count > 0 ? f.blocks[--f.count] : ::operator new(size);
  }
  static void operator delete(void* block) noexcept {
    Free& f = free_blocks();
    if (f.count >= 0 && f.count < kMax)
      f.blocks[f.count++] = block;
    else
      ::operator delete(block);
  }

 private:
  static constexpr int kMax = 32;
  struct Free {
    int count = 0;
    void* blocks[kMax];
    ~Free() {
      while (count > 0) ::operator delete(blocks[--count]);
      count = -1;  // blocks freed on this thread from now on go to malloc at once
    }
  };
  static Free& free_blocks() {
    thread_local Free f;
    return f;
  }
};

}  // namespace nanquest
