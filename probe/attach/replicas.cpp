#include "probe/attach/replicas.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "probe/attach/session.h"
#include "probe/numerics/hash.h"

namespace nanquest::attach {
namespace {

bool lies_dense_here(const at::Tensor& tensor) {
  return tensor.defined() && tensor.is_cpu() && tensor.layout() == at::kStrided &&
         tensor.is_non_overlapping_and_dense() && tensor.has_storage();
}

/// Stops at the first byte that is not zero, which is usually near the start.
bool all_zero(const char* data, std::size_t bytes) {
  return bytes == 0 || (data[0] == 0 && std::memcmp(data, data + 1, bytes - 1) == 0);
}

}  // namespace

std::vector<std::int64_t> hashes_of_parts(const std::vector<at::Tensor>& tensors,
                                          const std::vector<std::int64_t>& begins,
                                          const std::vector<std::int64_t>& bytes) {
  std::vector<std::int64_t> hashes;
  if (begins.size() != tensors.size() || bytes.size() != tensors.size()) return hashes;
  hashes.reserve(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!lies_dense_here(tensors[i])) return {};
    const auto all = static_cast<std::int64_t>(tensors[i].nbytes());
    const std::int64_t begin = std::clamp<std::int64_t>(begins[i], 0, all);
    const auto count = static_cast<std::size_t>(std::clamp<std::int64_t>(bytes[i], 0, all - begin));
    const char* data = static_cast<const char*>(tensors[i].const_data_ptr()) + begin;
    hashes.push_back(all_zero(data, count) ? 0 : std::bit_cast<std::int64_t>(hash_contents(data, count)));
  }
  return hashes;
}

void AttachSession::replicas_differ(ManifestReplicas told) {
  safely("noting that replicas differ", [&] { (void)log_.replicas_differ(std::move(told)); });
}

}  // namespace nanquest::attach
