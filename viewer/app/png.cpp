#include "viewer/app/png.h"

#include <png.h>

#include "probe/snapshot/atomic_file.h"

namespace nanquest::viewer {

Result<std::string> png_bytes(const Image& image) {
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  header.width = static_cast<png_uint_32>(image.width);
  header.height = static_cast<png_uint_32>(image.height);
  header.format = PNG_FORMAT_RGB;
  header.flags = PNG_IMAGE_FLAG_FAST;  // no row filters: flat drawings and text pack smaller without them
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(header);
  std::string file(bytes, '\0');
  if (!png_image_write_to_memory(&header, file.data(), &bytes, 0, image.rgb.data(), 0, nullptr))
    return Error{ErrorCode::internal, std::string("the picture could not be packed: ") + header.message, ""};
  file.resize(bytes);
  return file;
}

Status write_png(const std::string& path, const Image& image) {
  const Result<std::string> file = png_bytes(image);
  if (!file) return file.error();
  Status written = write_file_atomically(path, *file);
  if (written) return written;
  return Error{ErrorCode::io, written.error().message, "choose another place with --screenshot FILE"};
}

Result<Image> read_png(const std::string& path) {
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  const auto bad = [&] {
    return Error{ErrorCode::bad_file, path + ": " + header.message, "give a PNG file"};
  };
  if (!png_image_begin_read_from_file(&header, path.c_str())) return bad();
  header.format = PNG_FORMAT_RGB;
  Image image{static_cast<int>(header.width), static_cast<int>(header.height), {}};
  image.rgb.resize(PNG_IMAGE_SIZE(header));
  if (!png_image_finish_read(&header, nullptr, image.rgb.data(), 0, nullptr)) return bad();
  return image;
}

}  // namespace nanquest::viewer
