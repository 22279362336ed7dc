#include "trainer/checkpoint/safetensors_map.h"

#include <ATen/ATen.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <utility>

#include "trainer/checkpoint/safetensors_header.h"
#include "trainer/checkpoint/strict_json.h"

namespace nanquest::trainer {
namespace {

/// The bytes of a file, mapped privately: writes change only memory.
class Mapping {
 public:
  Mapping(const std::string& path, std::size_t size) : size_(size) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) throw BadFile{std::string("can't be opened: ") + std::strerror(errno)};
    void* at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    const int why = errno;
    ::close(file);
    if (at == MAP_FAILED) throw BadFile{std::string("can't be mapped: ") + std::strerror(why)};
    data_ = static_cast<std::byte*>(at);
  }
  ~Mapping() { ::munmap(data_, size_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_;
};

at::Tensor tensor_of(const SafetensorsHeader::Tensor& t, const std::shared_ptr<Mapping>& file,
                     std::uint64_t data_at) {
  const auto options = at::TensorOptions().dtype(t.type);
  std::byte* begin = file->data() + data_at + t.begin;
  if (reinterpret_cast<std::uintptr_t>(begin) % c10::elementSize(t.type) == 0)
    return at::from_blob(
        begin, t.shape, [file](void*) {}, options);
  // The format does not guarantee the alignment that a processor needs.
  at::Tensor copy = at::empty(t.shape, options);
  std::memcpy(copy.mutable_data_ptr(), begin, t.end - t.begin);
  return copy;
}

MappedSafetensors map_or_throw(const std::string& path) {
  std::error_code ec;
  const std::uint64_t size = std::filesystem::file_size(path, ec);
  if (ec) throw BadFile{ec.message()};
  std::ifstream in(path, std::ios::binary);
  if (!in) throw BadFile{"can't be opened"};
  SafetensorsHeader header = read_safetensors_header(in, size);
  const auto file = std::make_shared<Mapping>(path, size);
  MappedSafetensors mapped;
  for (const auto& t : header.tensors)
    mapped.tensors.emplace_back(t.name, tensor_of(t, file, header.data_at));
  mapped.metadata = std::move(header.metadata);
  return mapped;
}

}  // namespace

Result<MappedSafetensors> map_safetensors(const std::string& path) {
  const auto bad = [&](const std::string& what) {
    return Error{ErrorCode::bad_file, path + ": " + what, "give a complete .safetensors file"};
  };
  try {
    return map_or_throw(path);
  } catch (const BadFile& e) {
    return bad(e.what);
  } catch (const std::exception& e) {
    return bad(std::string("can't be read: ") + e.what());
  }
}

}  // namespace nanquest::trainer
