#include <ATen/ATen.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "probe/nanquest.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/checkpoint/safetensors_types.h"

namespace nanquest::trainer {

static_assert(std::endian::native == std::endian::little,
              "safetensors is little-endian; big-endian is not written");

namespace {
at::Tensor plain(const at::Tensor& t) {
  return t.detach().to(at::kCPU).contiguous();
}

/// The header, padded so that the data starts at a multiple of 8.
std::string header_of(const NamedTensors& sorted, const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header;
  header["__metadata__"] = metadata;
  std::uint64_t at = 0;
  for (const auto& [name, t] : sorted) {
    const std::uint64_t end = at + t.nbytes();
    header[name] = {{"dtype", *safetensors_name(t.scalar_type())},
                    {"shape", t.sizes().vec()},
                    {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

}  // namespace

Status write_safetensors(const std::string& path, const NamedTensors& tensors,
                         const std::map<std::string, std::string>& metadata) {
  NamedTensors sorted = tensors;
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.second.element_size() > b.second.element_size();
  });
  Checksum sum;
  for (auto& [name, t] : sorted) {
    if (!safetensors_name(t.scalar_type()))
      return Error{
          ErrorCode::unsupported,
          path + ": safetensors has no type for " + name + " (" + c10::toString(t.scalar_type()) + ")", ""};
    t = plain(t);
    sum.add(t.const_data_ptr(), t.nbytes());
  }
  std::map<std::string, std::string> all = metadata;
  all.emplace("format", "pt");
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(sum.value()));
  all[std::string(kChecksumKey)] = text;
  const std::string header = header_of(sorted, all);
  const std::uint64_t length = header.size();
  Result<AtomicFile> file = AtomicFile::create(path);
  if (!file) return file.error();
  if (Status s = file->append(&length, sizeof length); !s) return s;
  if (Status s = file->append(header.data(), header.size()); !s) return s;
  for (const auto& [name, t] : sorted)
    if (Status s = file->append(t.const_data_ptr(), t.nbytes()); !s) return s;
  return file->commit();
}

}  // namespace nanquest::trainer
