#include <ATen/ATen.h>

#include <algorithm>
#include <bit>

#include "probe/nanquest.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/checkpoint/safetensors_hash.h"
#include "trainer/checkpoint/safetensors_types.h"

namespace nanquest::trainer {

static_assert(std::endian::native == std::endian::little,
              "safetensors is little-endian; big-endian is not written");

namespace {
at::Tensor plain(const at::Tensor& t) {
  return t.detach().to(at::kCPU).contiguous();
}

std::string no_type_for(const std::string& path, const std::string& name, at::ScalarType type) {
  return path + ": safetensors has no type for " + name + " (" + c10::toString(type) + ")";
}

}  // namespace

Status write_safetensors(const std::string& path, const NamedTensors& tensors,
                         const std::map<std::string, std::string>& metadata) {
  NamedTensors sorted = tensors;
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.second.element_size() > b.second.element_size();
  });
  PartHashes sum;
  std::vector<SafetensorsEntry> entries;
  for (auto& [name, t] : sorted) {
    const auto type = safetensors_name(t.scalar_type());
    if (!type) return Error{ErrorCode::unsupported, no_type_for(path, name, t.scalar_type()), ""};
    t = plain(t);
    sum.add(hash_contents(t.const_data_ptr(), t.nbytes()));
    entries.push_back({name, std::string(*type), t.sizes().vec(), t.nbytes()});
  }
  std::map<std::string, std::string> all = metadata;
  all.emplace("format", "pt");
  all[std::string(kHashKey)] = hash_text(sum.finish());
  const std::string text = head_text(all, entries);
  all[std::string(kHeadKey)] = hash_text(hash_contents(text.data(), text.size()));
  const std::string head = safetensors_head(entries, all);
  Result<AtomicFile> file = AtomicFile::create(path);
  if (!file) return file.error();
  if (Status s = file->append(head.data(), head.size()); !s) return s;
  for (const auto& [name, t] : sorted)
    if (Status s = file->append(t.const_data_ptr(), t.nbytes()); !s) return s;
  return file->commit();
}

}  // namespace nanquest::trainer
