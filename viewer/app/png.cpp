#include "viewer/app/png.h"

#include <zlib.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace nanquest::viewer {
namespace {

void append_u32(std::vector<std::uint8_t>& out, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<std::uint8_t>(value >> shift));
}

/// Length, name, bytes, CRC of name and bytes (PNG specification, 5.3).
void append_chunk(std::vector<std::uint8_t>& out, const char* name, const std::vector<std::uint8_t>& bytes) {
  append_u32(out, static_cast<std::uint32_t>(bytes.size()));
  const std::size_t start = out.size();
  out.insert(out.end(), name, name + 4);
  out.insert(out.end(), bytes.begin(), bytes.end());
  append_u32(out,
             static_cast<std::uint32_t>(crc32(0, out.data() + start, static_cast<uInt>(out.size() - start))));
}

/// Every row behind a filter byte: 1 (difference to the left pixel) suits flat drawings.
std::vector<std::uint8_t> filtered(const Image& image) {
  const std::size_t stride = static_cast<std::size_t>(image.width) * 3;
  std::vector<std::uint8_t> out;
  out.reserve((stride + 1) * static_cast<std::size_t>(image.height));
  for (int y = 0; y < image.height; ++y) {
    const std::uint8_t* row = image.rgb.data() + static_cast<std::size_t>(y) * stride;
    out.push_back(1);
    for (std::size_t x = 0; x < stride; ++x)
      out.push_back(static_cast<std::uint8_t>(row[x] - (x >= 3 ? row[x - 3] : 0)));
  }
  return out;
}

Error failed(const std::string& path, int error) {
  return {ErrorCode::io, path + ": " + std::strerror(error), "choose another place with --screenshot FILE"};
}

}  // namespace

Status write_png(const std::string& path, const Image& image) {
  std::vector<std::uint8_t> file = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  std::vector<std::uint8_t> header;
  append_u32(header, static_cast<std::uint32_t>(image.width));
  append_u32(header, static_cast<std::uint32_t>(image.height));
  header.insert(header.end(), {8, 2, 0, 0, 0});  // 8 bits, RGB, deflate, no interlace
  append_chunk(file, "IHDR", header);
  const std::vector<std::uint8_t> raw = filtered(image);
  uLongf size = compressBound(static_cast<uLong>(raw.size()));
  std::vector<std::uint8_t> packed(size);
  if (compress2(packed.data(), &size, raw.data(), static_cast<uLong>(raw.size()), 9) != Z_OK)
    return Error{ErrorCode::internal, path + ": the picture could not be compressed", ""};
  packed.resize(size);
  append_chunk(file, "IDAT", packed);
  append_chunk(file, "IEND", {});

  const std::string temporary = path + ".tmp";
  std::FILE* out = std::fopen(temporary.c_str(), "wb");
  if (out == nullptr) return failed(path, errno);
  const bool written = std::fwrite(file.data(), 1, file.size(), out) == file.size();
  const bool closed = std::fclose(out) == 0;
  if (written && closed && std::rename(temporary.c_str(), path.c_str()) == 0) return {};
  const int error = errno;
  std::remove(temporary.c_str());
  return failed(path, error);
}

}  // namespace nanquest::viewer
