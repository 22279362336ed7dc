#include <ATen/ATen.h>

#include <filesystem>
#include <fstream>
#include <utility>

#include "probe/nanquest.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/checkpoint/safetensors_hash.h"
#include "trainer/checkpoint/safetensors_header.h"
#include "trainer/checkpoint/safetensors_types.h"
#include "trainer/checkpoint/strict_json.h"

namespace nanquest::trainer {
namespace {

SafetensorsFile read_or_throw(std::ifstream& in, std::uint64_t size) {
  SafetensorsHeader header = read_safetensors_header(in, size);
  SafetensorsFile file;
  file.metadata = std::move(header.metadata);
  PartHashes sum;
  std::vector<SafetensorsEntry> described;
  for (const SafetensorsHeader::Tensor& e : header.tensors) {
    at::Tensor t = at::empty(e.shape, at::TensorOptions().dtype(e.type));
    if (t.nbytes() > 0 &&
        !in.read(static_cast<char*>(t.mutable_data_ptr()), static_cast<std::streamsize>(t.nbytes())))
      throw BadFile{"truncated"};
    sum.add(hash_contents(t.const_data_ptr(), t.nbytes()));
    described.push_back({e.name, std::string(safetensors_name(e.type).value_or("")), e.shape, t.nbytes()});
    file.tensors.emplace_back(e.name, std::move(t));
  }
  bool head_is_whole = false;
  if (const auto stored = file.metadata.find(std::string(kHeadKey)); stored != file.metadata.end()) {
    const std::string head = head_text(file.metadata, described);
    if (stored->second != hash_text(hash_contents(head.data(), head.size())))
      throw BadFile{"the checksum of its header does not match: the file was damaged"};
    head_is_whole = true;
    file.metadata.erase(stored);
  }
  if (const auto stored = file.metadata.find(std::string(kHashKey)); stored != file.metadata.end()) {
    file.whole = head_is_whole;
    if (stored->second != hash_text(sum.finish()))
      throw BadFile{"the checksum does not match: the file was damaged"};
    file.metadata.erase(stored);
  }
  file.metadata.erase(std::string(kOldSumKey));
  return file;
}

}  // namespace

at::Tensor SafetensorsFile::find(const std::string& name) const {
  for (const auto& [n, t] : tensors)
    if (n == name) return t;
  return {};
}

Result<SafetensorsFile> read_safetensors(const std::string& path, std::uint64_t largest_bytes) {
  const auto bad = [&](const std::string& what) {
    return Error{ErrorCode::bad_file, path + ": " + what, "give a complete .safetensors file"};
  };
  std::error_code ec;
  const std::uint64_t size = std::filesystem::file_size(path, ec);
  std::ifstream in(path, std::ios::binary);
  if (ec || !in) return bad(ec ? ec.message() : "can't be opened");
  if (size > largest_bytes)
    return bad("larger than the limit of " + std::to_string(largest_bytes) + " bytes");
  try {
    return read_or_throw(in, size);
  } catch (const BadFile& e) {
    return bad(e.what);
  } catch (const std::exception& e) {
    return bad(std::string("can't be read: ") + e.what());
  }
}

}  // namespace nanquest::trainer
