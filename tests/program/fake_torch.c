// A library that is called like LibTorch, of a version that is not there.
#include <stdint.h>

uint64_t aoti_torch_abi_version(void) {
  return (uint64_t)1 << 56 | (uint64_t)2 << 48 | (uint64_t)3 << 40;
}
